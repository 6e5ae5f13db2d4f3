"""Examining a handler."""
