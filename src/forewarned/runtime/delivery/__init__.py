"""How documents reach the VMs of a server that is one process."""
