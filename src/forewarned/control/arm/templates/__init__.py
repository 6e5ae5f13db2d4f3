"""Templates: their expressions, and the deployments that carry them out."""
