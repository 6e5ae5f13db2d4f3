"""How hard tests look: for as long as a person waits, or for as long as `make test-all` takes."""

from hypothesis import HealthCheck, settings


def is_patient() -> bool:
    """Whether this run was given a profile of Hypothesis that has time."""
    return settings.get_current_profile_name() not in {"ci", "dev"}


def amount(quick: int, patient: int) -> int:
    """Of kills, of connections: as many as this run has time for."""
    return patient if is_patient() else quick


def few(examples: int, *, steps: int = 50) -> settings:
    """So many examples, unless the profile says how long to look."""
    if is_patient():
        return settings()
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
