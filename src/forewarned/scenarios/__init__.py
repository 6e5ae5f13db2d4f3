"""Scenario files: what befalls a handler, and what is expected of it."""
