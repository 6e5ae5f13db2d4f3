"""The sockets that operators and their programs connect to, and what serves them."""
