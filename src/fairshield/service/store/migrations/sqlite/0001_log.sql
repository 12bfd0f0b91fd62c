CREATE TABLE policies (
    id TEXT PRIMARY KEY,
    status TEXT NOT NULL,
    progress REAL NOT NULL,
    digest TEXT,
    words TEXT,
    verification TEXT,
    error TEXT,
    size INTEGER,
    spec TEXT,
    created TEXT NOT NULL
) STRICT;

CREATE TABLE artifacts (
    digest TEXT PRIMARY KEY,
    content BLOB NOT NULL
) STRICT;

CREATE TABLE streams (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE entries (
    stream INTEGER NOT NULL REFERENCES streams (id),
    seq INTEGER NOT NULL,
    n INTEGER,
    overruled INTEGER NOT NULL,
    key TEXT,
    line TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (stream, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX entries_by_key ON entries (stream, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX entries_by_n ON entries (stream, n) WHERE n IS NOT NULL;
CREATE INDEX entries_overruled ON entries (stream, n) WHERE overruled = 1;

-- An entry is never changed; the chain of hashes would tell, these do not even let it happen.
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'entries of a log are never changed'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'entries of a log are never removed'); END;

CREATE TABLE windows (
    stream INTEGER NOT NULL REFERENCES streams (id),
    window INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    n INTEGER NOT NULL,
    at TEXT NOT NULL,
    fair INTEGER NOT NULL,
    bias REAL,
    bias_unshielded REAL,
    overruled INTEGER NOT NULL,
    cost_paid REAL NOT NULL,
    snapshot TEXT NOT NULL,
    PRIMARY KEY (stream, window)
) STRICT, WITHOUT ROWID;
