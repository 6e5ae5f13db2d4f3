"""The profile for a long look: `pytest tests/stateful --hypothesis-profile=thorough`."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "thorough",
    max_examples=2_000,
    stateful_step_count=80,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
