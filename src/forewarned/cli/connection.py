"""The CLI's connection to the control API: a request gets an answer, or raises a CommandError.

Never through a proxy and never after a redirect: what is asked here can take machines down. A token
is never sent where it could be read in transit.
"""

import getpass
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self, TypeVar

import httpx2
import msgspec

from forewarned.cli.credentials import Credentials
from forewarned.cli.failures import (
    ADVICE,
    CommandError,
    RefusedError,
    ServerFailedError,
    UnreachableError,
    UsageError,
)
from forewarned.cli.tls_trust import tls_failure, trust
from forewarned.config.values import Address
from forewarned.control.v1 import wire

T = TypeVar("T")

PATIENCE: Final = httpx2.Timeout(30, connect=5)
ENDLESS: Final = httpx2.Timeout(30, connect=5, read=None)
"""For what takes as long as it takes: a step of the clock runs everything on the way."""
WATCHING: Final = httpx2.Timeout(30, connect=5, read=60)
"""The stream of changes says something every 15 s, so a minute of silence is a dead server."""
FOLLOWING: Final = httpx2.Timeout(30, connect=5, read=300)
"""Progress comes every second, but not before the server has read all that was sent to it."""
_NO_CREDENTIALS: Final = Credentials()
_LONGEST_CHANGE: Final = 256 * 1024 * 1024
_LONGEST_ACTOR: Final = 64
_PORT: Final = re.compile(r":[0-9]+/?$")


@dataclass(frozen=True, slots=True)
class Answer:
    body: bytes
    address: str

    def read(self, type: type[T]) -> T:
        try:
            return wire.decode(self.body, type)
        except msgspec.MsgspecError as error:
            if is_unknown_value(error):
                raise newer_server(error) from error
            raise _foreign(self.address, f"its response can't be read: {error}") from error

    def as_json(self) -> str:
        """What the API returned, with no space between."""
        try:
            return msgspec.json.format(self.body, indent=-1).decode()
        except msgspec.MsgspecError as error:
            raise _foreign(self.address, f"its response can't be read: {error}") from error


class Control:
    def __init__(
        self,
        address: str,
        *,
        credentials: Credentials = _NO_CREDENTIALS,
        timeout: httpx2.Timeout = PATIENCE,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        """`address` is HOST:PORT or a URL; without a `transport`, requests go over the network."""
        self.address = normal_address(address)
        self._ca = credentials.ca
        self._client = httpx2.Client(
            base_url=self.address,
            headers={
                "Forewarned-Actor": actor(),
                "Accept": "application/json",
                **_authorization(self.address, credentials.token),
            },
            timeout=timeout,
            transport=transport,
            trust_env=False,
            follow_redirects=False,
            verify=trust(self.address, credentials.ca),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def get(self, path: str, query: Mapping[str, str | int | None] | None = None) -> Answer:
        wanted = {name: value for name, value in (query or {}).items() if value is not None}
        return self._ask("GET", path, params=wanted)

    def post(
        self, path: str, body: object = None, *, timeout: httpx2.Timeout | None = None
    ) -> Answer:
        return self._ask("POST", path, body=body, timeout=timeout)

    def patch(self, path: str, body: object) -> Answer:
        return self._ask("PATCH", path, body=body)

    def delete(self, path: str) -> Answer:
        return self._ask("DELETE", path)

    def put_in_lines(
        self, path: str, body: object, query: Mapping[str, str] | None = None
    ) -> Iterator[Answer]:
        """The answer a line at a time: how far it has come, and last what came of it."""
        request = self._client.build_request(
            "PUT",
            path,
            content=msgspec.json.encode(body),
            headers={"Content-Type": "application/json", "Accept": "application/x-ndjson"},
            params=query or None,
            timeout=FOLLOWING,
        )
        with self._streamed(request) as response:
            for line in response.iter_lines():
                yield Answer(line.encode(), self.address)

    def changes(self, last_id: str = "") -> Iterator[httpx2.ServerSentEvent]:
        """Every change from now on, the first message being what is open now.

        With the id of the last message of an earlier stream, those since then come first.
        """
        headers = {"Last-Event-ID": last_id} if last_id else {}
        request = self._client.build_request(
            "GET", "/v1/changes", headers=headers, timeout=WATCHING
        )
        with self._streamed(request) as response:
            yield from httpx2.EventSource(response, _LONGEST_CHANGE)

    def download(self, path: str, query: Mapping[str, str | None]) -> Iterator[bytes]:
        """An answer of any length, a piece at a time."""
        wanted = {name: value for name, value in query.items() if value is not None}
        request = self._client.build_request("GET", path, params=wanted, timeout=FOLLOWING)
        with self._streamed(request) as response:
            try:
                yield from response.iter_bytes()
            except (httpx2.RemoteProtocolError, httpx2.ReadError) as error:
                raise ServerFailedError(
                    f"the server at {self.address} closed the connection before its response was"
                    " complete",
                    "Its log says why. Try again.",
                    code="broken_off",
                ) from error

    def requests(self) -> Iterator[httpx2.ServerSentEvent]:
        """Every request of a VM to an emulator from now on, the first message being a hello."""
        request = self._client.build_request("GET", "/v1/requests", timeout=WATCHING)
        with self._streamed(request) as response:
            yield from httpx2.EventSource(response, _LONGEST_CHANGE)

    @contextmanager
    def _streamed(self, request: httpx2.Request) -> Iterator[httpx2.Response]:
        with self._answering():
            response = self._client.send(request, stream=True)
            try:
                if not response.is_success:
                    response.read()
                    self._refuse(response)
                yield response
            finally:
                response.close()

    def _ask(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        params: Mapping[str, str | int] | None = None,
        timeout: httpx2.Timeout | None = None,
    ) -> Answer:
        content = None if body is None else msgspec.json.encode(body)
        headers = {} if content is None else {"Content-Type": "application/json"}
        with self._answering():
            response = self._client.request(
                method,
                path,
                content=content,
                headers=headers,
                params=params or None,
                timeout=self._client.timeout if timeout is None else timeout,
            )
        if not response.is_success:
            self._refuse(response)
        return Answer(response.content, self.address)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            failure = tls_failure(error, self.address, self._ca)
            raise failure or _unreachable(self.address, str(error)) from error
        except httpx2.TimeoutException as error:
            raise ServerFailedError(
                f"the server at {self.address} did not answer in time",
                "The request may have taken effect all the same: see 'forewarned history'.",
                code="timeout",
            ) from error
        except httpx2.HTTPError as error:
            raise _broken(self.address, error) from error

    def _refuse(self, response: httpx2.Response) -> None:
        try:
            found = wire.decode(response.content, wire.Refusal).error
        except msgspec.MsgspecError as error:
            raise _foreign(self.address, f"it answered {response.status_code}") from error
        kind = ServerFailedError if response.is_server_error else RefusedError
        raise refusal(kind, found, response.content)


def refusal(kind: type[CommandError], error: wire.Error, body: bytes) -> CommandError:
    return kind(
        error.message,
        *[ADVICE[error.code]] if error.code in ADVICE else [],
        code=error.code,
        field=error.field,
        body=body,
    )


def normal_address(text: str) -> str:
    """`HOST:PORT` or a URL, as a URL."""
    try:
        url = httpx2.URL(text if "://" in text else f"http://{text}")
    except httpx2.InvalidURL as error:
        raise _not_an_address(text) from error
    # Without a port it would be 80, which is never meant.
    has_port = "://" in text or _PORT.search(text) is not None
    is_plain = url.path in {"", "/"} and not url.query and not url.fragment and not url.userinfo
    if url.scheme not in {"http", "https"} or not url.host or not is_plain or not has_port:
        raise _not_an_address(text)
    return str(url).rstrip("/")


def actor() -> str:
    """Who the history says it was: a label, not an identity."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        # A container may run under a number that has no name.
        user = "unknown"
    sane = "".join(char if char.isascii() and char.isprintable() else "?" for char in user)
    return f"cli:{sane}"[:_LONGEST_ACTOR]


def _authorization(address: str, token: str) -> Mapping[str, str]:
    if not token:
        return {}
    url = httpx2.URL(address)
    if url.scheme != "https" and not Address(url.host, 0).is_loopback:
        raise UsageError(
            f"not sending a token to {address}: it could be read in transit",
            "Give --control or FOREWARNED_CONTROL as https://HOST:PORT.",
            "If the server requires no token, omit --token-file and unset FOREWARNED_TOKEN.",
            code="token_in_clear",
            field="control",
        )
    return {"Authorization": f"Bearer {token}"}


def _not_an_address(text: str) -> UsageError:
    return UsageError(
        f"{text!r} is not an address of a control listener",
        "Give --control or FOREWARNED_CONTROL as HOST:PORT or as http://HOST:PORT.",
        code="bad_address",
        field="control",
    )


def _unreachable(address: str, reason: str) -> CommandError:
    return UnreachableError(
        f"no server answers at {address}" + (f" ({reason})" if reason else ""),
        "Start it with 'forewarned serve' (in a clone: 'make run').",
        "If it runs elsewhere, give its address with --control or FOREWARNED_CONTROL.",
        code="unreachable",
    )


def _broken(address: str, error: httpx2.HTTPError) -> CommandError:
    failure = _foreign(address, f"the connection broke: {error}")
    if address.startswith("http:"):
        # How one that expects TLS takes plain HTTP: it hangs up.
        failure.advice.append(f"If it serves HTTPS, write https{address.removeprefix('http')}.")
    return failure


def is_unknown_value(error: msgspec.MsgspecError) -> bool:
    """Whether an answer has a value of an enum that this version does not know."""
    return "Invalid enum value" in str(error)


def newer_server(error: msgspec.MsgspecError) -> CommandError:
    return ServerFailedError(
        f"the server is newer than this CLI, which can't read its response: {error}",
        "Update this CLI to the version of the server.",
        "With --json it prints the response as it is.",
        code="newer_server",
    )


def _foreign(address: str, what: str) -> CommandError:
    return ServerFailedError(
        f"the program at {address} is not a Forewarned control listener: {what}",
        "The CLI needs the control listener, not the one for VMs.",
        "Give its address with --control or FOREWARNED_CONTROL.",
        code="not_understood",
    )
