"""How the agents of one event learn that all of them are ready."""
