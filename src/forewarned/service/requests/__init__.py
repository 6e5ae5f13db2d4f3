"""Requests of VMs as developers watch them, on emulators only."""
