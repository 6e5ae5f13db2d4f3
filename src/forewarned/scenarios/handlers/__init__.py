"""Handlers of scheduled events, as programs that an examination starts and ends."""
