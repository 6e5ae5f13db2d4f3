-- Scopes that a VM of this name has left. With the one it is in, those are all whose history and
-- events can name it: nobody has to go through what happened to all the others.
CREATE TABLE former_scopes (
    folded TEXT NOT NULL, -- the VM's name as names are compared
    scope_id TEXT NOT NULL,
    PRIMARY KEY (folded, scope_id)
) STRICT, WITHOUT ROWID;

INSERT OR IGNORE INTO former_scopes
    SELECT fold(value), scope_id FROM history, json_each(history.resources);
INSERT OR IGNORE INTO former_scopes
    SELECT fold(value), scope_id FROM events, json_each(events.resources);
DELETE FROM former_scopes WHERE EXISTS (
    SELECT 1 FROM resources
    WHERE resources.folded = former_scopes.folded AND resources.scope_id = former_scopes.scope_id
);

-- Parts of a maintenance belong together when some of them are over, too.
CREATE INDEX events_by_maintenance ON events (maintenance, sequence) WHERE maintenance IS NOT NULL;
