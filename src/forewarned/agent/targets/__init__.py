"""What hooks act on: programs, HTTP services, Kubernetes."""
