-- Ids of scopes as ids are compared: which begin alike is asked of the index. The store gives the
-- connection `fold`, and an index on it would keep everybody else from writing to the file.
ALTER TABLE scopes ADD COLUMN folded TEXT NOT NULL DEFAULT '';
UPDATE scopes SET folded = fold(id);
CREATE INDEX scopes_by_folded ON scopes (folded);

CREATE TABLE declarations (
    folded TEXT PRIMARY KEY, -- the path as paths are compared
    path TEXT NOT NULL,
    document TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    next_instance INTEGER NOT NULL,
    is_going INTEGER NOT NULL
) STRICT;

CREATE TABLE operations (
    id TEXT PRIMARY KEY,
    path TEXT NOT NULL,
    action TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    event_ids TEXT NOT NULL,
    failure_code TEXT NOT NULL,
    failure TEXT NOT NULL
) STRICT;

CREATE INDEX operations_by_start ON operations (started_at);
