"""What a running agent says of itself."""
