"""The console's pages, one module for each part of the navigation."""
