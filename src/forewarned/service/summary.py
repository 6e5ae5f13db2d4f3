"""What an operator wants to know at a glance, in numbers."""

from typing import NamedTuple


class Summary(NamedTuple):
    soon: int
    """Events that start within a quarter of an hour."""
    held: int
    """Events that are approved, and wait all the same."""
    overdue: int
    """Events that should have been over by now."""
    unread_scopes: int
    """Scopes with VMs, none of which reads the document."""
    hosts: int
    """Hosts that open events affect."""
