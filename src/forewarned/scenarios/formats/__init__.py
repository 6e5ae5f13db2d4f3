"""What came of an examination, for people and for programs."""
