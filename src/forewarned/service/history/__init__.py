"""What becomes of history once it is written."""
