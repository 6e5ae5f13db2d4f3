"""How the times of a document are written."""

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

from hypothesis import given
from hypothesis import strategies as st

from forewarned.service.events.api_versions import rfc1123

OFFSETS = st.builds(timezone, st.builds(timedelta, minutes=st.integers(-14 * 60, 14 * 60)))
INSTANTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=OFFSETS)  # noqa: DTZ001


@given(INSTANTS)
def test_instants_are_written_as_the_standard_library_writes_them(instant: datetime) -> None:
    """F11: in UTC and in English, whatever the day and the zone."""
    assert rfc1123(instant) == format_datetime(instant.astimezone(UTC), usegmt=True)
