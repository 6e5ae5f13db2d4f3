"""Measurements anyone can repeat: ratios against a limit, taken side by side in one run."""
