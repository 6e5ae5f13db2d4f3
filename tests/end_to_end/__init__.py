"""The product as its users have it: real processes, real sockets, real files."""
