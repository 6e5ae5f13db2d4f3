"""Those who use the service, carry its events out, and break what it stands on."""
