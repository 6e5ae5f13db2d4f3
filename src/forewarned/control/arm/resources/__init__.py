"""Resource groups, and resources that are kept as they were declared."""
