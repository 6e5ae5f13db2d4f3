"""Runs a program as one of the fleet's VMs."""
