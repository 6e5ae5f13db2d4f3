"""Lists of the console, a page at a time."""
