"""Subscriptions: who is told of which transitions of events, where, and in which shape."""
