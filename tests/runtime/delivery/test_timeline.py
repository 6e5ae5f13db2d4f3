"""A recording as it is played back: when, for which VMs, and with which dates."""

from datetime import UTC, datetime, timedelta

import pytest

from forewarned.recordings.form import Answered, Began, Outcome, Recording, Unanswered
from forewarned.runtime.delivery.timeline import EmptyRecordingError, Timeline, moved, timeline
from tests.builders import MINUTE

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def recorded(*outcomes: Outcome, vm: str = "") -> Timeline:
    began = Began(at=NOON, recording=1, vm=vm)
    return timeline(Recording(began=began, vm=vm, outcomes=outcomes))


def document(*names: str, at: datetime = NOON) -> Answered:
    listed = ",".join(f'"{name}"' for name in names)
    body = f'{{"DocumentIncarnation":1,"Events":[{{"EventId":"A","Resources":[{listed}]}}]}}'
    return Answered(at=at, status=200, body=body)


def names(played: Timeline) -> list[str]:
    [availability_set] = played.fleet.availability_sets
    return [member.name for member in availability_set.members]


def test_moments_are_as_far_apart_as_they_were_and_never_go_back() -> None:
    late, early = NOON + MINUTE, NOON + SECOND
    played = recorded(
        document("a"),
        Unanswered(at=late, loss="broken"),
        document("a", at=early),
        document("a", at=late + MINUTE),
    )

    assert [each.after for each in played.moments] == [0 * MINUTE, MINUTE, MINUTE, 2 * MINUTE]


def test_the_fleet_is_the_vm_that_read_and_all_that_events_name() -> None:
    played = recorded(document("web_1", "WEB_0"), document("db", "web_1"), vm="web_0")

    assert names(played) == ["web_0", "web_1", "db"]


@pytest.mark.parametrize("vm", ["", "not a/name"])
def test_a_name_that_no_vm_can_have_is_left_out(vm: str) -> None:
    assert names(recorded(document("in valid", ""), vm=vm)) == ["vm"]
    assert names(recorded(Answered(at=NOON, status=200, body="[1]"), vm=vm)) == ["vm"]


def test_a_recording_of_nothing_is_refused() -> None:
    with pytest.raises(EmptyRecordingError):
        recorded()


@pytest.mark.parametrize(
    ("date", "later"),
    [
        ("Thu, 01 Jan 2026 13:00:00 GMT", "Thu, 01 Jan 2026 13:01:01 GMT"),
        ("2026-01-01T13:00:00Z", "2026-01-01T13:01:01Z"),
        ("2026-01-01T15:00:00+02:00", "2026-01-01T13:01:01Z"),
        ("", ""),
        ("soon", "soon"),
        ("Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"),
    ],
)
def test_dates_are_as_far_ahead_as_they_were_and_nothing_else_is_touched(
    date: str, later: str
) -> None:
    """Rounded up, as everywhere: 60.5 s are 61."""
    body = f'{{ "NotBefore" : "{date}", "Description":"NotBefore 2026-01-01T13:00:00Z", "X": 1.50'

    found = moved(body.encode(), timedelta(seconds=60.5)).decode()

    assert found == body.replace(f'"{date}"', f'"{later}"', 1)
