"""Where a handler runs: its network, its processes, and their end."""
