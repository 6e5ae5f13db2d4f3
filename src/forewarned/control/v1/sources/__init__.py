"""`/v1/sources`: what actuators list of their platforms, and what came of it."""
