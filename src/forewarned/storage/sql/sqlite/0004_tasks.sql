-- What carries out a VM's events, by name; empty where the settings say that, or nobody does.
ALTER TABLE resources ADD COLUMN actuator TEXT NOT NULL DEFAULT '';

-- One VM's part of an event that has started. Rows are added as the defaults have them.
CREATE TABLE tasks (
    event_id TEXT NOT NULL,
    vm TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    type TEXT NOT NULL,
    host TEXT NOT NULL,
    actuator TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'Waiting',
    attempt INTEGER NOT NULL DEFAULT 0,
    holder TEXT NOT NULL DEFAULT '',
    claimable_at INTEGER, -- null while nobody may claim it
    begun_at INTEGER,
    seen_before TEXT NOT NULL DEFAULT '',
    seen_after TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    ended_at INTEGER, -- null while the event is open, and the VM one of its
    PRIMARY KEY (event_id, vm)
) STRICT;

CREATE INDEX tasks_by_claim ON tasks (actuator, claimable_at)
    WHERE claimable_at IS NOT NULL AND ended_at IS NULL;
