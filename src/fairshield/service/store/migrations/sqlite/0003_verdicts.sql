-- NULL: written by a version that did not tell exempt windows; a replay fills it in.
ALTER TABLE windows ADD COLUMN verdict TEXT;
ALTER TABLE windows ADD COLUMN measured_bias REAL;
ALTER TABLE windows ADD COLUMN measured_bias_unshielded REAL;

-- Where the monitor of a stream stands: one row each, replaced now and then.
CREATE TABLE monitors (
    stream INTEGER PRIMARY KEY REFERENCES streams (id),
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL,
    state TEXT NOT NULL
) STRICT;
