"""The commands of `forewarned`, one module for each group."""
