"""Commands about history: listing and exporting it, and verifying that it is what was written."""
