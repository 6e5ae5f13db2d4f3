"""What every control listener shares: who is let in, bodies, errors, tables of operations."""
