"""`/v1/tasks`: what actuators claim and report, and what operators do about it."""
