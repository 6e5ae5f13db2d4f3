"""The fleet as fleet files and `/v1` write it."""
