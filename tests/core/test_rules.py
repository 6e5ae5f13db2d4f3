"""What applies where an operator has chosen nothing."""

from forewarned.core.model import EventType
from forewarned.core.rules import Rules
from tests.builders import DAY


def test_unless_an_operator_chooses_otherwise_the_rules_are_azures() -> None:
    rules = Rules()

    assert rules.silence == DAY
    assert rules.max_user_events is None
    assert rules.host_failure_type is EventType.REDEPLOY
    assert rules.predicted_failure_notice == 7 * DAY
    assert not rules.own_terminate_only
    assert not rules.short_notice_allowed


def test_unless_an_operator_chooses_otherwise_the_incarnation_never_starts_again() -> None:
    """I7. Azure's does."""
    assert not Rules().resets_incarnation
