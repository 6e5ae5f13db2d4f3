-- As on SQLite, whose one writer knows which subscriptions messages are for. Here there are only rows
-- that were copied from there.
CREATE TABLE addressed (
    first_number bigint PRIMARY KEY, -- of messages that follow each other
    last_number bigint NOT NULL,
    takers text COLLATE "C" NOT NULL, -- JSON: names of subscriptions
    written_at bigint NOT NULL -- by a real clock, as with deliveries
);
