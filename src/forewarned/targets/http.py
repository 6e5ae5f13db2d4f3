"""HTTP services to call: one request and its answer, or a TargetError.

Never through a proxy that the environment names and never after a redirect: what answers there is
not what the file says (S16). Answers have a largest size, and none is unpacked.
"""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import httpx2

from forewarned import __version__
from forewarned.targets.errors import TargetError
from forewarned.targets.urls import UNPRINTABLE, origin

_LONGEST_BODY: Final = 32 * 1024 * 1024
"""The pods of a large node, with room to spare."""
_CONNECTING: Final = 5.0
_PATIENCE: Final = 600.0
"""Seconds that an answer may take; a hook's own limit ends it sooner."""
_BODY_PATIENCE: Final = 5.0
"""Seconds for the rest of an answer, where its status is what counts."""


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
        """The beginning of the body in one line, for a message, as far as it can be printed."""
        text = UNPRINTABLE.sub(" ", self.body[:200].decode(errors="replace"))
        return " ".join(text.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    auth: tuple[str, str] | None = None
    """User and password."""


async def send(
    request: Request, *, ca_file: str | None = None, longest_body: int = _LONGEST_BODY
) -> Answer:
    """`ca_file` has the certificates that signed the service's own, if they are not well known."""
    where = origin(request.url)
    try:
        trust = _trust(request.url, ca_file)
    except OSError as error:
        raise TargetError(f"can't reach {where}: {error}") from error
    async with _exchange(request, trust=trust) as response:
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > longest_body:
                raise TargetError(f"{where} sent more than {longest_body} bytes")
        return _answer(response, body)


async def send_to(
    addresses: Sequence[str], request: Request, *, trust: ssl.SSLContext | None, longest_body: int
) -> Answer:
    """Send it to one of these addresses, the first that can be reached.

    The service is still asked for, and must identify itself, by the name in the URL. Only
    the beginning of the body is read, and what is slow to come is left: the status is what counts.
    """
    for address in addresses[:-1]:
        with contextlib.suppress(_UnreachableError):
            return await _send_to(address, request, trust, longest_body)
    return await _send_to(addresses[-1], request, trust, longest_body)


async def _send_to(
    address: str, request: Request, trust: ssl.SSLContext | None, longest_body: int
) -> Answer:
    async with _exchange(request, trust=trust or _unused(), address=address) as response:
        body = bytearray()
        with contextlib.suppress(TimeoutError, httpx2.HTTPError, httpx2.StreamError):
            async with asyncio.timeout(_BODY_PATIENCE):
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) >= longest_body:
                        break
        return _answer(response, body[:longest_body])


@asynccontextmanager
async def _exchange(
    request: Request, *, trust: ssl.SSLContext | bool, address: str | None = None
) -> AsyncIterator[httpx2.Response]:
    named: dict[str, str] = {}
    extensions: dict[str, str] = {}
    try:
        url = httpx2.URL(request.url)
        if address is not None:
            named["Host"] = url.netloc.decode()
            extensions["sni_hostname"] = url.host
            url = url.copy_with(host=address)
        async with (
            httpx2.AsyncClient(
                trust_env=False,
                follow_redirects=False,
                verify=trust,
                timeout=httpx2.Timeout(_PATIENCE, connect=_CONNECTING),
            ) as client,
            client.stream(
                request.method,
                url,
                headers=_bytes(
                    {
                        "User-Agent": f"forewarned-agent/{__version__}",
                        "Accept-Encoding": "identity",
                        **named,
                        **request.headers,
                    }
                ),
                content=request.body,
                auth=request.auth,
                extensions=extensions,
            ) as response,
        ):
            yield response
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError) as error:
        # Its origin only: the rest of an address may be a secret.
        told = f"can't reach {origin(request.url)}: {str(error) or type(error).__name__}"
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            raise _UnreachableError(told) from error
        raise TargetError(told) from error


class _UnreachableError(TargetError):
    """Nothing was sent yet."""


def _answer(response: httpx2.Response, body: bytearray) -> Answer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(status=response.status_code, headers=headers, body=bytes(body))


def _trust(url: str, ca_file: str | None) -> ssl.SSLContext | bool:
    if not url.startswith("https:"):
        return _unused()
    if ca_file is None:
        return True
    return ssl.create_default_context(cafile=ca_file)


@cache
def _unused() -> ssl.SSLContext:
    """For plain HTTP: else the client loads certificates, which takes longer than a request."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def trusted(*, ca: str = "", ca_file: str = "") -> ssl.SSLContext:
    """What is trusted: well-known authorities, or these alone. Raises TargetError.

    Takes some milliseconds: keep it.
    """
    try:
        if ca or ca_file:
            return ssl.create_default_context(cafile=ca_file or None, cadata=ca or None)
    except (OSError, ValueError) as error:
        # Its name is in no message of ssl's.
        where = f" in {ca_file}" if ca_file else ""
        why = getattr(error, "strerror", None) or str(error)
        raise TargetError(f"can't use the certificates{where}: {why}") from error
    return httpx2.create_ssl_context(trust_env=False)


def _bytes(headers: Mapping[str, str]) -> dict[bytes, bytes]:
    """An event's description may be in any language; the library takes texts in ASCII only."""
    return {
        name.encode(): value.encode(errors="backslashreplace") for name, value in headers.items()
    }


def secret(path: str) -> str:
    """The text of a file that holds a token, a password or an address. Read at each use."""
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise TargetError(f"can't read {path}: {why}") from error
