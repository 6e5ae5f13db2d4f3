"""Pollers on hypervisors: what feeds them, and how one is run."""
