"""What an agent's hooks and an actuator's drivers act on: programs, HTTP services, Kubernetes."""
