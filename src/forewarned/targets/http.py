"""HTTP services to call: one request and its answer, or a TargetError.

Never through a proxy that the environment names and never after a redirect: what answers there is
not what the file says (S16). Answers have a largest size, and none is unpacked.
"""

import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from forewarned import __version__
from forewarned.targets.errors import TargetError

_LONGEST_BODY: Final = 32 * 1024 * 1024
"""The pods of a large node, with room to spare."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_CONNECTING: Final = 5.0
_PATIENCE: Final = 600.0
"""Seconds that an answer may take; a hook's own limit ends it sooner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    # Any: what JSON is made of. Callers check what they take from it.
    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise TargetError("the response is not JSON") from error

    def excerpt(self) -> str:
        """The beginning of the body in one line, for a message."""
        return " ".join(self.body[:200].decode(errors="replace").split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    auth: tuple[str, str] | None = None
    """User and password."""


async def send(request: Request, *, ca_file: str | None = None) -> Answer:
    """`ca_file` has the certificates that signed the service's own, if they are not well known."""
    where = origin(request.url)
    try:
        async with (
            httpx2.AsyncClient(
                trust_env=False,
                follow_redirects=False,
                verify=_trust(request.url, ca_file),
                timeout=httpx2.Timeout(_PATIENCE, connect=_CONNECTING),
            ) as client,
            client.stream(
                request.method,
                request.url,
                headers=_bytes(
                    {
                        "User-Agent": f"forewarned-agent/{__version__}",
                        "Accept-Encoding": "identity",
                        **request.headers,
                    }
                ),
                content=request.body,
                auth=request.auth,
            ) as response,
        ):
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > _LONGEST_BODY:
                    raise TargetError(f"{where} sent more than {_LONGEST_BODY} bytes")
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Answer(status=response.status_code, headers=headers, body=bytes(body))
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError) as error:
        # Its origin only: the rest of an address may be a secret.
        raise TargetError(f"can't reach {where}: {str(error) or type(error).__name__}") from error


def _trust(url: str, ca_file: str | None) -> ssl.SSLContext | bool:
    if not url.startswith("https:"):
        # Plain HTTP needs no certificates, and loading them takes longer than a request.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file is None:
        return True
    return ssl.create_default_context(cafile=ca_file)


def _bytes(headers: Mapping[str, str]) -> dict[bytes, bytes]:
    """An event's description may be in any language; the library takes texts in ASCII only."""
    return {
        name.encode(): value.encode(errors="backslashreplace") for name, value in headers.items()
    }


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
    if not _TOKEN.fullmatch(name) or _UNPRINTABLE.search(value):
        raise ValueError(f"{name!r} can't be a header's name, or its value can't be a header's")


def secret(path: str) -> str:
    """The text of a file that holds a token, a password or an address. Read at each use."""
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise TargetError(f"can't read {path}: {why}") from error
