"""A store with PostgreSQL's visible semantics, in memory and in one thread."""
