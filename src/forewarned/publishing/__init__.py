"""Messages on their way out: the publisher, the shapes it gives them, and where they go."""
