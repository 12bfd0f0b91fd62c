CREATE TABLE policies (
    id TEXT PRIMARY KEY,
    status TEXT NOT NULL,
    progress DOUBLE PRECISION NOT NULL,
    digest TEXT,
    words TEXT,
    verification TEXT,
    error TEXT,
    size BIGINT,
    spec TEXT,
    created TEXT NOT NULL
);

CREATE TABLE artifacts (
    digest TEXT PRIMARY KEY,
    content BYTEA NOT NULL
);

CREATE TABLE streams (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

-- Whoever adds entries has locked the row of their stream; to look for it again with every entry
-- would take as long as adding it.
CREATE TABLE entries (
    stream BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    n BIGINT,
    overruled INTEGER NOT NULL,
    key TEXT,
    line TEXT NOT NULL,
    hash BYTEA NOT NULL,
    PRIMARY KEY (stream, seq)
);

CREATE UNIQUE INDEX entries_by_key ON entries (stream, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX entries_by_n ON entries (stream, n) WHERE n IS NOT NULL;
CREATE INDEX entries_overruled ON entries (stream, n) WHERE overruled = 1;

-- An entry is never changed; the chain of hashes would tell, these do not even let it happen.
CREATE FUNCTION entries_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'entries of a log are never %',
        CASE TG_OP WHEN 'UPDATE' THEN 'changed' ELSE 'removed' END;
END;
$$;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION entries_stay();
CREATE TRIGGER entries_remain BEFORE DELETE OR TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION entries_stay();

CREATE TABLE windows (
    stream BIGINT NOT NULL REFERENCES streams (id),
    "window" BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    n BIGINT NOT NULL,
    at TEXT NOT NULL,
    fair INTEGER NOT NULL,
    bias DOUBLE PRECISION,
    bias_unshielded DOUBLE PRECISION,
    overruled BIGINT NOT NULL,
    cost_paid DOUBLE PRECISION NOT NULL,
    snapshot TEXT NOT NULL,
    PRIMARY KEY (stream, "window")
);
