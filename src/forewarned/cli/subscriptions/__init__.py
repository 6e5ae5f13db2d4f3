"""Commands about who is told of events."""
