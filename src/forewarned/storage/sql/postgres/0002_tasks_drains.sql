-- What carries out a VM's events, by name; empty where the settings say that, or nobody does.
ALTER TABLE resources ADD COLUMN actuator text COLLATE "C" NOT NULL DEFAULT '';

-- One VM's part of an event that has started. Rows are added as the defaults have them.
CREATE TABLE tasks (
    event_id text COLLATE "C" NOT NULL,
    vm text COLLATE "C" NOT NULL,
    scope_id text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    host text COLLATE "C" NOT NULL,
    actuator text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL DEFAULT 'Waiting',
    attempt bigint NOT NULL DEFAULT 0,
    holder text COLLATE "C" NOT NULL DEFAULT '',
    claimable_at bigint, -- null while nobody may claim it
    begun_at bigint,
    seen_before text COLLATE "C" NOT NULL DEFAULT '',
    seen_after text COLLATE "C" NOT NULL DEFAULT '',
    error text COLLATE "C" NOT NULL DEFAULT '',
    ended_at bigint, -- null while the event is open, and the VM one of its
    PRIMARY KEY (event_id, vm)
) WITH (fillfactor = 70);

CREATE INDEX tasks_by_claim ON tasks (actuator, claimable_at)
    WHERE claimable_at IS NOT NULL AND ended_at IS NULL;

-- The newest drain of each host, with what each of its VMs waits for.
CREATE TABLE drains (
    host text COLLATE "C" PRIMARY KEY,
    document text COLLATE "C" NOT NULL -- JSON, as `storage.relational.drains` writes it
);
