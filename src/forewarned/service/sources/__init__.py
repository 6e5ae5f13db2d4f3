"""The fleet kept in step with platforms: what a source lists, and what that changes."""
