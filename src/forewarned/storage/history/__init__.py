"""History beyond writing and listing it: its hash chain, its retention, and how it is verified."""
