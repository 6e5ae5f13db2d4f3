-- Instants are microseconds since 1970 in UTC, spans are microseconds. Lists and values that are
-- only ever read whole are JSON.

CREATE TABLE scopes (
    number INTEGER PRIMARY KEY, -- in order of creation
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    revision INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    active INTEGER NOT NULL,
    last_read_at INTEGER,
    next_wake INTEGER,
    policy TEXT NOT NULL,
    rounds TEXT
) STRICT;

CREATE INDEX scopes_by_wake ON scopes (next_wake, id) WHERE next_wake IS NOT NULL;

CREATE TABLE resources (
    folded TEXT PRIMARY KEY, -- the name as names are compared; SQLite's NOCASE knows ASCII only
    name TEXT NOT NULL,
    scope_id TEXT NOT NULL REFERENCES scopes (id),
    position INTEGER NOT NULL,
    update_domain INTEGER NOT NULL,
    fault_domain INTEGER NOT NULL,
    host TEXT NOT NULL,
    state TEXT NOT NULL,
    priority TEXT NOT NULL,
    eviction_policy TEXT NOT NULL,
    terminate_notice INTEGER,
    address TEXT UNIQUE,
    profile TEXT
) STRICT;

CREATE INDEX resources_by_scope ON resources (scope_id, position);
CREATE INDEX resources_by_host ON resources (host, scope_id);

CREATE TABLE events (
    sequence INTEGER PRIMARY KEY, -- the oldest first
    id TEXT NOT NULL UNIQUE,
    scope_id TEXT NOT NULL REFERENCES scopes (id),
    type TEXT NOT NULL,
    status TEXT NOT NULL,
    source TEXT NOT NULL,
    resources TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    not_before INTEGER,
    description TEXT NOT NULL,
    duration INTEGER,
    announced INTEGER NOT NULL,
    approved_by TEXT,
    approved_at INTEGER,
    approved_by_policy INTEGER,
    maintenance TEXT,
    started_at INTEGER,
    start_cause TEXT,
    ended_at INTEGER, -- null while the event is open
    end_reason TEXT NOT NULL
) STRICT;

CREATE INDEX events_by_scope ON events (scope_id, sequence);
CREATE INDEX events_open ON events (scope_id, sequence) WHERE ended_at IS NULL;
CREATE INDEX events_started ON events (sequence) WHERE status = 'Started';
CREATE INDEX events_of_work ON events (maintenance, scope_id)
    WHERE ended_at IS NULL AND maintenance IS NOT NULL;

CREATE TABLE history (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice, even if old rows are taken out
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    address TEXT NOT NULL,
    action TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    event_id TEXT,
    event_type TEXT,
    resources TEXT NOT NULL,
    cause TEXT NOT NULL
) STRICT;

CREATE INDEX history_by_scope ON history (scope_id, id);
CREATE INDEX history_by_event ON history (event_id, id) WHERE event_id IS NOT NULL;

CREATE TABLE notes (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
