-- NULL: written by a version that did not tell exempt windows; a replay fills it in.
ALTER TABLE windows ADD COLUMN verdict TEXT;
ALTER TABLE windows ADD COLUMN measured_bias DOUBLE PRECISION;
ALTER TABLE windows ADD COLUMN measured_bias_unshielded DOUBLE PRECISION;

-- Where the monitor of a stream stands: one row each, replaced now and then.
CREATE TABLE monitors (
    stream BIGINT PRIMARY KEY REFERENCES streams (id),
    seq BIGINT NOT NULL,
    hash TEXT NOT NULL,
    state TEXT NOT NULL
);
