-- The newest drain of each host, with what each of its VMs waits for.
CREATE TABLE drains (
    host TEXT NOT NULL PRIMARY KEY,
    document TEXT NOT NULL -- JSON, as `storage.relational.drains` writes it
) STRICT, WITHOUT ROWID;
