"""Recording what an endpoint says: the command, and what it prints."""
