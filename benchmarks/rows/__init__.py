"""The rows of the table. Each module measures one, or several that share their servers."""
