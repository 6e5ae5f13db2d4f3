"""What happens to events over time: waking, activation, and the reports of actuators."""
