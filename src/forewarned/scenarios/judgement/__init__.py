"""How findings follow from observations. Pure."""
