"""Each artefact built, installed and tried alone, as a user would: `make test-packages`."""
