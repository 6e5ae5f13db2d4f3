"""`/v1/subscriptions`: who is told of which events, and how the deliveries fare."""
