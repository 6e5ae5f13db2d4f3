-- Who is told of transitions of events, and how that fares.
CREATE TABLE subscriptions (
    name TEXT NOT NULL PRIMARY KEY,
    document TEXT NOT NULL, -- JSON, as `storage.relational.subscriptions` writes it
    delivered INTEGER NOT NULL DEFAULT 0, -- messages
    last_delivered_at INTEGER,
    failed INTEGER NOT NULL DEFAULT 0, -- attempts
    failures INTEGER NOT NULL DEFAULT 0, -- attempts since the last delivery
    last_failed_at INTEGER,
    last_error TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

-- Messages as transactions leave them, while there is a subscription. The publisher takes them out.
CREATE TABLE outbox (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice
    scope_id TEXT NOT NULL,
    content TEXT NOT NULL -- JSON, as `storage.relational.outbox` writes it
) STRICT;

-- Those that a subscription has yet to be told of, or could not be told of.
CREATE TABLE messages (
    number INTEGER PRIMARY KEY, -- as in the outbox
    scope_id TEXT NOT NULL,
    content TEXT NOT NULL
) STRICT;

-- One message on its way to one subscription. Instants are of a real clock, never of a virtual one.
CREATE TABLE deliveries (
    number INTEGER NOT NULL REFERENCES messages (number),
    subscription TEXT NOT NULL REFERENCES subscriptions (name),
    scope_id TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending',
    attempts INTEGER NOT NULL DEFAULT 0, -- that failed
    queued_at INTEGER NOT NULL,
    tried_at INTEGER, -- the first time
    due_at INTEGER, -- null while another one of its scope comes first, and once it was given up
    given_up_at INTEGER,
    claimed_by TEXT, -- the node that is delivering it
    claimed_until INTEGER,
    last_error TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (number, subscription)
) STRICT, WITHOUT ROWID;

CREATE INDEX deliveries_due ON deliveries (subscription, due_at, number) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_of_scope ON deliveries (subscription, scope_id, number)
    WHERE state = 'pending';
CREATE INDEX deliveries_given_up ON deliveries (given_up_at) WHERE given_up_at IS NOT NULL;

-- Locked by whoever changes one of these tables but the outbox, so that nodes take turns.
CREATE TABLE publishing (
    one_row INTEGER PRIMARY KEY CHECK (one_row = 1)
) STRICT;

INSERT INTO publishing VALUES (1);
