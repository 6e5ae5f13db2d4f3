"""What developers run: nothing here is installed with the product."""
