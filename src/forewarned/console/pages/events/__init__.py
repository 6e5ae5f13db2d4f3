"""The pages of events, and of the tasks that carry them out."""
