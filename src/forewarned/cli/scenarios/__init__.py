"""Scenario files on the command line."""
