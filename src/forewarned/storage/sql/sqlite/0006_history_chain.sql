-- A digest over each row of history and all rows before it, so that a later edit is found.
CREATE TABLE history_chain (
    number INTEGER PRIMARY KEY, -- from 1 on, without gaps but for what retention removed
    history_id INTEGER UNIQUE, -- null once retention has removed the row
    digest TEXT NOT NULL -- SHA-256, as `storage.history.digest` says
) STRICT;
