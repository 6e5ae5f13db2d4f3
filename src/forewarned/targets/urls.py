"""URLs and headers as people write them: which are valid, and what of a URL may be shown."""

import re
from typing import Final
from urllib.parse import urlsplit

UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def without_secrets(url: str) -> str:
    """An address for people: no password, no query."""
    return origin(url) + urlsplit(url).path


def origin(url: str) -> str:
    """`https://host:port`, without what may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def check_url(url: str) -> None:
    """Raise ValueError for what can't be asked."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(f"{url!r} is not a URL that starts with http:// or https://")


def check_header(name: str, value: str) -> None:
    """Raise ValueError for what can't be a header."""
    if not _TOKEN.fullmatch(name) or UNPRINTABLE.search(value):
        raise ValueError(f"{name!r} can't be a header's name, or its value can't be a header's")
