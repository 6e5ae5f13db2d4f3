-- A digest over each row of history and all rows before it, so that a later edit is found.
CREATE TABLE history_chain (
    number bigint PRIMARY KEY, -- from 1 on, without gaps but for what retention removed
    history_id bigint UNIQUE, -- null once retention has removed the row
    digest text COLLATE "C" NOT NULL -- SHA-256, as `storage.history.digest` says
);
