"""Dates in every form that scheduled events were ever published in. Pure.

Documents carry RFC 1123. Older pages of Azure's show ISO 8601, test servers send that too, and
other clients found RFC 822 with offsets and RFC 850 worth reading. Weekdays are ignored: published
examples have wrong ones.
"""

import re
from datetime import UTC, date, datetime, timedelta, timezone
from email.utils import parsedate_tz
from typing import Final

# The standard library reads days and zones. It drops fractions and offsets with a colon without a
# word, so the text is taken apart first. asctime has the year at the end.
_FORM: Final = re.compile(
    r"(?P<day>[A-Z0-9,\s-]+?)[T\s]\s*(?P<hour>\d{1,2}):(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
    r"(?:\s*(?P<zone>[A-Z]+|[+-]\d\d(?::?\d\d)?))?(?P<year>\s+\d{4})?",
    flags=re.ASCII,
)
_WEEKDAY: Final = re.compile(r"^[A-Z]+,?\s+(?=[A-Z]|\d+[\s-][A-Z])", flags=re.ASCII)
_NAME: Final = re.compile(r"([A-Z]{3})[A-Z]+", flags=re.ASCII)
_YEAR: Final = re.compile(r"(?<!\d)(?:\d{4}|\d\d)$", flags=re.ASCII)
# No form is longer; a text that is would only cost time.
_LONGEST: Final = 64


def parse_date(text: str) -> datetime | None:
    """The instant in UTC, or None where the text is no date; one without a zone is in UTC."""
    trimmed = text.strip().upper()
    found = _FORM.fullmatch(trimmed) if len(trimmed) <= _LONGEST else None
    if found is None:
        return None
    try:
        day = _day(found["day"] + (found["year"] or ""))
        return datetime(
            day.year,
            day.month,
            day.day,
            int(found["hour"]),
            int(found["minute"]),
            # A leap second is the last second of its minute to a clock that can't count it.
            min(int(found["second"] or 0), 59),
            int((found["fraction"] or "")[:6].ljust(6, "0")),
            tzinfo=_zone(found["zone"] or ""),
        ).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _day(text: str) -> date:
    if text[:4].isdigit():
        return date.fromisoformat(text)
    plain = _NAME.sub(r"\1", _WEEKDAY.sub("", text)).replace("-", " ")
    year, found = _YEAR.search(plain), parsedate_tz(f"{plain} 00:00:00")
    if year is None or found is None:
        raise ValueError(text)
    # RFC 5322, section 4.3; the standard library follows POSIX, where 68 is 2068.
    century = 0 if len(year[0]) == 4 else 2000 if int(year[0]) < 50 else 1900
    return date(century + int(year[0]), found[1], found[2])


def _zone(text: str) -> timezone:
    """A name that the standard library does not know is as good as UTC (RFC 5322, section 4.3)."""
    offset = text.replace(":", "")
    padded = offset + "00" if re.fullmatch(r"[+-]\d\d", offset) else offset
    found = parsedate_tz(f"1 Jan 2000 00:00:00 {padded}")
    return timezone(timedelta(seconds=(found and found[9]) or 0))
