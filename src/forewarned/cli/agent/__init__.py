"""The commands of `forewarned agent`."""
