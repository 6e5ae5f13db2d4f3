"""Scenario files: what happens to a handler, and what is expected of it."""
