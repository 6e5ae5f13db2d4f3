"""The fleet as an operator declares it: planned, checked, compared, placed and applied."""
