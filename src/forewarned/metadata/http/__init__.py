"""HTTP between a VM and the metadata listener: connections, requests, responses, limits."""
