"""`/v1/hosts/{host}/drain`: host drains, and what they ask actuators."""
