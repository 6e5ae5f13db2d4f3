"""The services that scenarios are played on."""
