"""`forewarned init`: commented files to start from."""
