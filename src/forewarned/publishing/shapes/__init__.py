"""What messages look like where they go: pure functions of a message."""
