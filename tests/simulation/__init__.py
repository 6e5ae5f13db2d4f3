"""The whole service in one thread, in virtual time, with every decision taken from a seed."""
