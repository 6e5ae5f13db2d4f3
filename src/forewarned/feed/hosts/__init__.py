"""The feed of a poller on a hypervisor: over TLS, and of that hypervisor's VMs only."""
