"""`forewarned init`: commented files to begin with."""
