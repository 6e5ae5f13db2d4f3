"""The control API for people and programs: `/v1`."""
