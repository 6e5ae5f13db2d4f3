-- The one writer knows which subscriptions messages are for. So they need not wait in the outbox to
-- be compared with them, only to be queued: many at a time, while no change waits for it.
CREATE TABLE addressed (
    first_number INTEGER PRIMARY KEY, -- of messages that follow each other
    last_number INTEGER NOT NULL,
    takers TEXT NOT NULL -- JSON: names of subscriptions
) STRICT;
