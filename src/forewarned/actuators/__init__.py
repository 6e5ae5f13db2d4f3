"""What carries Started events out, and reports when the work is done."""
