"""How the server is put together and run: one process, or a supervisor, a writer and pollers."""
