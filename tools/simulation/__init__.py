"""Runs the simulation of `tests/simulation` from many seeds, and shows where a law was broken."""
