"""What leaves the service: the outbox, subscriptions, and what is to be delivered to them."""
