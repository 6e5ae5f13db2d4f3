"""Sources: an actuator lists the VMs of its platform, and the server keeps the fleet in step."""
