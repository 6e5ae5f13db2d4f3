"""The timeline of the home page as a picture."""
