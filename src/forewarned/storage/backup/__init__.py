"""Backups of a server's state: taken while it runs, verified, and restored to an empty place."""
