"""The standard examination: one file for each documented fact of Azure."""
