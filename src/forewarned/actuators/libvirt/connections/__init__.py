"""Connections to the libvirts of hosts, and the threads that calls block in."""
