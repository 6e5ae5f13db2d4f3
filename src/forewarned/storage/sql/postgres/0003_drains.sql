-- The newest drain of each host, with what each of its VMs waits for.
CREATE TABLE drains (
    host text COLLATE "C" PRIMARY KEY,
    document text COLLATE "C" NOT NULL -- JSON, as `storage.relational.drains` writes it
);
