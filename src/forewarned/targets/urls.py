"""URLs and headers as people write them: which are valid, and what of a URL may be shown."""

import re
from collections.abc import Collection
from typing import Final
from urllib.parse import unquote, urlsplit

UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SHORTEST_PIECE: Final = 3
_SHORTEST_TOKEN: Final = 8
"""Of a webhook's path and query. Shorter pieces are words such as `hooks`, which errors need."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def without_secrets(url: str) -> str:
    """An address for people: no password, no query."""
    return origin(url) + urlsplit(url).path


def origin(url: str) -> str:
    """`https://host:port`, without what may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def hidden(url: str, text: str) -> str:
    """A text without what may be a secret of the URL: its password, and what follows its host.

    A receiver may repeat in an error what it was asked for.
    """
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    return _without(_pieces(f"{user}/{parts.path}?{parts.query}"), text, _SHORTEST_TOKEN)


def hidden_whole(url: str, text: str) -> str:
    """The same for a URL whose host may be a secret, too, in one line."""
    pieces = _pieces(url.partition("://")[2])
    return " ".join(_without(pieces, text, _SHORTEST_PIECE).split())


def _pieces(text: str) -> set[str]:
    pieces = re.split(r"[/@:?&=#,;]+", text)
    return {each for piece in pieces for each in (piece, unquote(piece))}


def _without(pieces: Collection[str], text: str, shortest: int) -> str:
    for piece in sorted(pieces, key=len, reverse=True):
        if len(piece) >= shortest:
            text = text.replace(piece, "***")
    return text


def is_http(url: str) -> bool:
    """Whether it is for a web service, rather than one of Apprise's for people."""
    return url.lower().startswith(("http://", "https://"))


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
        raise ValueError(
            f"{name!r} is not a valid HTTP header: its name or its value has characters that"
            " headers can't have"
        )


def check_content_type(value: str) -> None:
    if UNPRINTABLE.search(value):
        raise ValueError("the content type has characters that a header can't have")
