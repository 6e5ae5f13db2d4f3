-- What carries out a VM's events, by name; empty where the settings say that, or nobody does.
ALTER TABLE resources ADD COLUMN actuator TEXT NOT NULL DEFAULT '';

-- One VM's part of an event that has started.
CREATE TABLE tasks (
    event_id TEXT NOT NULL,
    vm TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    type TEXT NOT NULL,
    host TEXT NOT NULL,
    actuator TEXT NOT NULL,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    holder TEXT NOT NULL,
    claimable_at INTEGER, -- null while nobody may claim it
    begun_at INTEGER,
    seen_before TEXT NOT NULL,
    seen_after TEXT NOT NULL,
    error TEXT NOT NULL,
    ended_at INTEGER, -- null while the event is open, and the VM one of its
    PRIMARY KEY (event_id, vm)
) STRICT, WITHOUT ROWID;

CREATE INDEX tasks_by_claim ON tasks (actuator, claimable_at)
    WHERE claimable_at IS NOT NULL AND ended_at IS NULL;
CREATE INDEX tasks_troubled ON tasks (state) WHERE state IN ('Stuck', 'Returning') AND ended_at IS NULL;
