"""Where the scheduled events of this machine are."""
