"""Microsoft.Network, as far as clients need it."""
