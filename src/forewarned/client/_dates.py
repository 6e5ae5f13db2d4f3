"""Dates in every form that scheduled events were ever published in. Pure.

Documents carry RFC 1123. Older pages of Azure's show ISO 8601, test servers send that too, and
other clients found RFC 822 with offsets and RFC 850 worth reading. Weekdays are ignored: published
examples have wrong ones.
"""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

# A leap second is the last second of its minute to a clock that can't count it.
_LEAP_SECOND: Final = re.compile(r"(?<=:\d\d:)60")
# No form is longer; a text that is would only cost time.
_LONGEST: Final = 64


def parse_date(text: str) -> datetime | None:
    """The instant in UTC, or None where the text is no date; one without a zone is in UTC."""
    trimmed = _LEAP_SECOND.sub("59", text.strip().upper())
    # A day without a time of day is no instant.
    if len(trimmed) > _LONGEST or ":" not in trimmed:
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(trimmed)
            return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
        except (ValueError, OverflowError, TypeError, IndexError):
            continue
    return None
