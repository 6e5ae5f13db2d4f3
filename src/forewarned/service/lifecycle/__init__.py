"""What happens to events over time: waking, activation, and what actuators report."""
