"""Copies a store into another, of either kind: `forewarned store copy`."""
