"""Dates in every form that scheduled events were ever published in. Pure.

Documents carry RFC 1123. Older pages of Azure's show ISO 8601, test servers send that too, and
other clients found RFC 822 with offsets and RFC 850 worth reading. Names of weekdays are not
looked at: published examples have wrong ones.
"""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

_MONTHS: Final = [
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
]
# RFC 822's own; a name that is not among them is as good as UTC (RFC 5322, section 4.3).
_ZONES: Final = {
    "est": -5,
    "edt": -4,
    "cst": -6,
    "cdt": -5,
    "mst": -7,
    "mdt": -6,
    "pst": -8,
    "pdt": -7,
}
_TIME: Final = r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
_ZONE: Final = r"(?P<zone>[A-Za-z]+|[+-]\d\d:?\d\d)"
_MAIL: Final = re.compile(
    # Mon, 19 Sep 2016 18:29:47 GMT, 19 Sep 16 18:29 +0200, Monday, 19-Sep-16 18:29:47 GMT
    r"(?:[A-Za-z]+,?\s+)?(?P<day>\d{1,2})[\s-](?P<name>[A-Za-z]{3})[a-z]*[\s-]"
    rf"(?P<year>\d{{4}}|\d\d)\s+{_TIME}(?:\s*{_ZONE})?",
    flags=re.ASCII,
)
_ASCTIME: Final = re.compile(
    # Mon Sep 19 18:29:47 2016
    rf"[A-Za-z]+\s+(?P<name>[A-Za-z]{{3}})\s+(?P<day>\d{{1,2}})\s+{_TIME}"
    rf"(?:\s+{_ZONE})?\s+(?P<year>\d{{4}})",
    flags=re.ASCII,
)
_ISO: Final = re.compile(
    # 2016-09-19T18:29:47Z
    rf"(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d)[Tt\s]{_TIME}(?:\s?{_ZONE})?",
    flags=re.ASCII,
)
# No form is longer; a text that is would only cost time.
_LONGEST: Final = 64


def parse_date(text: str) -> datetime | None:
    """The instant in UTC, or None where the text is no date; one without a zone is in UTC."""
    trimmed = text.strip()
    if len(trimmed) > _LONGEST:
        return None
    for form in (_MAIL, _ASCTIME, _ISO):
        if found := form.fullmatch(trimmed):
            return _instant(found.groupdict())
    return None


def _instant(parts: dict[str, str | None]) -> datetime | None:
    try:
        return datetime(
            year=_year(parts["year"] or ""),
            month=_month(parts),
            day=int(parts["day"] or ""),
            hour=int(parts["hour"] or ""),
            minute=int(parts["minute"] or ""),
            # A leap second is the last one of its minute for whoever can't count it.
            second=min(int(parts["second"] or "0"), 59),
            microsecond=int((parts["fraction"] or "0")[:6].ljust(6, "0")),
            tzinfo=_zone(parts["zone"] or ""),
        ).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _year(text: str) -> int:
    year = int(text)
    if len(text) == 4:
        return year
    return year + (2000 if year < 50 else 1900)


def _month(parts: dict[str, str | None]) -> int:
    if number := parts.get("month"):
        return int(number)
    return _MONTHS.index((parts["name"] or "").lower()) + 1


def _zone(text: str) -> timezone:
    if text[:1] in {"+", "-"}:
        digits = text[1:].replace(":", "")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        return timezone(-offset if text.startswith("-") else offset)
    return timezone(timedelta(hours=_ZONES.get(text.lower(), 0)))
