"""Notice of an interruption before it happens, time to prepare, and a way to say "go ahead"."""

__version__ = "0.1.0"
