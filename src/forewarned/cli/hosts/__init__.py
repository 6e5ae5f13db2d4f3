"""Commands about hypervisors."""
