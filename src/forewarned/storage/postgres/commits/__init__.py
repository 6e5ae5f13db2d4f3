"""How transaction functions are run on PostgreSQL, committed, and run again."""
