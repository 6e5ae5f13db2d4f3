"""The JSON of VMs and scale sets, read from clients and shown to them."""
