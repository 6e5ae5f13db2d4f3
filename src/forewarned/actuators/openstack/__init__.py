"""VMs of OpenStack: carrying events out on them by Nova, and listing them."""
