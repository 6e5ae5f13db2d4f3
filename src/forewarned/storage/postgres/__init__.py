"""The store that several nodes share: PostgreSQL. Needs the extra `postgres`."""
