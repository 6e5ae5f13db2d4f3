"""The pages of subscriptions: how they fare, and the forms to add, edit and rotate."""
