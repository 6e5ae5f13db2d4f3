"""What operators leave running on every VM: it prepares, approves and recovers, once each."""
