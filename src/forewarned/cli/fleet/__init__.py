"""Commands about the fleet and its file."""
