"""Requests: what listeners need to answer them, and how developers watch those of VMs."""
