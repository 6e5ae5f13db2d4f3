"""How each kind of target is reached."""
