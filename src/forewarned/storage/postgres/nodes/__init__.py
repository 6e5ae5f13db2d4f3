"""What makes a server on PostgreSQL one node among several."""
