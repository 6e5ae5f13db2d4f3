"""Commands about stores and their nodes, and what they read and write in a store by themselves."""
