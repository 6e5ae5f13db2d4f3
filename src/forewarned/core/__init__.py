"""The rules of scheduled events, and nothing else.

Pure: the standard library's value types only. No clock, no I/O, no randomness; whatever the
rules need to know (the time, fresh ids, settings) comes in as an argument, so any history
replays to the same state.
"""
