-- The one writer knows which subscriptions messages are for. So they need not wait in the outbox to
-- be compared with them, only to be queued: many at a time, and not by the changes that send them.
CREATE TABLE addressed (
    first_number INTEGER PRIMARY KEY, -- of messages that follow each other
    last_number INTEGER NOT NULL,
    takers TEXT NOT NULL, -- JSON: names of subscriptions
    written_at INTEGER NOT NULL -- by a real clock, as with deliveries
) STRICT;
