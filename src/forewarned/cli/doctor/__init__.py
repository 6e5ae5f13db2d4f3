"""`forewarned doctor`: what is wrong with a server's set-up, where, and what to do about it."""
