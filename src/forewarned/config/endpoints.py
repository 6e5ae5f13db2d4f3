"""A metadata endpoint as people write it, for the SDK and for the agent's file.

Invariant: importing this costs nothing, because every program that imports the SDK does.
"""

import re
from typing import Final
from urllib.parse import urlsplit

_ENDPOINT: Final = re.compile(
    r"https?://(?:[^/?#@\s\[\]]+|\[[0-9A-Fa-f:.]+\](?::\d+)?)(?:/[^?#\s]*)?"
)


def endpoint_url(text: str) -> str:
    """A URL, or HOST:PORT, as the URL that `/metadata/...` goes after; ValueError otherwise."""
    url = text if "://" in text else f"http://{text}"
    if not _ENDPOINT.fullmatch(url) or not _has_sane_port(url):
        raise ValueError(f"{text!r} is not an endpoint: write it like http://127.0.0.1:8169")
    return url.rstrip("/")


def _has_sane_port(url: str) -> bool:
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False
