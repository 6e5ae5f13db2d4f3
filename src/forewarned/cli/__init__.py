"""The command line: parse, call the control API, print. It decides nothing.

Importing this is cheap; each command brings what it needs when it is run.
"""

from forewarned.cli.app import cli, main

__all__ = ["cli", "main"]
