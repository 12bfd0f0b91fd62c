CREATE TABLE access_keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    hash BYTEA NOT NULL,
    scopes TEXT NOT NULL,
    stream TEXT,
    created TEXT NOT NULL,
    revoked TEXT
);
