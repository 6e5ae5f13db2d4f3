"""History over HTTP: listing it, and following it as it happens."""
