"""What a metadata endpoint said, kept in a file, to look at and to play back."""
