"""Which operation a request asks for: the path, the query, the api-version. Pure.

Checks come in this order: the form of the request and where it was sent from (guards), the path,
the method, the query, the Metadata header, the api-version. The header comes before the version
because Azure answers a bare request with "Required metadata header not specified". Only versions
known not to need the header do without it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from urllib.parse import unquote_plus

from forewarned.config.durations import InvalidDurationError, parse_duration
from forewarned.core.errors import InvalidIdError
from forewarned.core.ids import EventId, parse_event_id
from forewarned.metadata.http import guards
from forewarned.metadata.http.requests import Request
from forewarned.metadata.http.responses import Persistence
from forewarned.metadata.instance_versions import (
    INSTANCE_VERSIONS,
    METADATA_VERSIONS,
    NEWEST_METADATA_VERSIONS,
)
from forewarned.metadata.options import LONGEST_POLL, Options
from forewarned.metadata.refusals import Reason, Refusal
from forewarned.service.events.api_versions import EVENT_VERSIONS, NEWEST_EVENT_VERSIONS
from forewarned.service.readiness import Standing


class Format(StrEnum):
    JSON = "json"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float
    last_incarnation: int | None
    """The incarnation the caller has already; None for the current one."""


@dataclass(frozen=True, slots=True)
class ReadEvents:
    version: str
    known_tags: frozenset[str]
    """The incarnations the caller has already, or `*` for any."""
    wait: Wait | None = None
    """How long the caller waits for a change; None for an ordinary poll."""


@dataclass(frozen=True, slots=True)
class Approve:
    body: bytes


@dataclass(frozen=True, slots=True)
class ReadInstance:
    version: str
    path: tuple[str, ...]
    format: Format


@dataclass(frozen=True, slots=True)
class ReadVersions:
    pass


@dataclass(frozen=True, slots=True)
class ReadToken:
    audience: str
    """The service the token is for."""
    client_id: str = ""
    """The identity the caller named; empty for none."""


@dataclass(frozen=True, slots=True)
class ReadReadiness:
    """How far the agents are with an event."""

    event_id: EventId


@dataclass(frozen=True, slots=True)
class ReportReadiness:
    """How far the caller's agent is with an event."""

    event_id: EventId
    standing: Standing


Operation = (
    ReadEvents
    | Approve
    | ReadInstance
    | ReadVersions
    | ReadToken
    | ReadReadiness
    | ReportReadiness
    | Refusal
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedRequest:
    operation: Operation
    persistence: Persistence
    vm: str | None = None
    """The VM that the path names, in an emulator."""
    is_head: bool = False
    lingers: bool = False
    """Whether the client may still be sending: close only once it has closed."""
    raw: Request | None = None
    """As it was sent. Only where requests are observed, and where it was HTTP at all."""


_EVENTS: Final = "/metadata/scheduledevents"
_INSTANCE: Final = "/metadata/instance"
_VERSIONS: Final = "/metadata/versions"
_TOKEN: Final = "/metadata/identity/oauth2/token"  # noqa: S105  # a path

_READINESS: Final = "/metadata/forewarned/readiness"

# The managed-identity protocol was App Service's before it was the metadata service's.
_TOKEN_VERSIONS: Final = frozenset({*METADATA_VERSIONS, "2017-09-01"})
_LONGEST_NAME: Final = 1024

_INCARNATION: Final = re.compile(r"[0-9]{1,10}", re.ASCII)

_OF_A_VM: Final = re.compile(r"/vm/(?P<vm>[\w.-]+)(?P<path>/.*)", re.IGNORECASE | re.ASCII)
# The previews of 2016 had the version in the path.
_VERSION_IN_PATH: Final = re.compile(r"/metadata/(latest|\d{4}-\d{2}-\d{2})(/.*)?")


def route(request: Request, options: Options) -> RoutedRequest:
    path, _, query = request.target.partition("?")
    vm = None
    if options.emulator and (found := _OF_A_VM.fullmatch(path)):
        vm, path = found["vm"], found["path"]
    refusal = guards.refusal(request, options)
    return RoutedRequest(
        operation=refusal or _operation(request, path, query),
        persistence=_persistence(request, refusal),
        vm=vm,
        is_head=request.method == "HEAD",
    )


def _persistence(request: Request, refusal: Refusal | None) -> Persistence:
    is_odd = refusal is not None and refusal.reason in {Reason.MALFORMED, Reason.WRONG_HOST}
    if is_odd or request.method == "CONNECT" or not request.keeps_alive:
        return Persistence.CLOSE
    return (
        Persistence.KEEP_ALIVE_HTTP_1_0 if request.http_version == "1.0" else Persistence.KEEP_ALIVE
    )


def _operation(request: Request, path: str, query: str) -> Operation:
    folded = path.lower()
    bare = folded.removesuffix("/")
    if bare == _EVENTS:
        return _for_events(request, query)
    if bare == _INSTANCE or folded.startswith(f"{_INSTANCE}/"):
        return _for_instance(request, query, bare)
    if bare == _VERSIONS:
        return _for_versions(request, query)
    if bare == _TOKEN:
        return _for_token(request, query)
    if bare == _READINESS:
        return _for_readiness(request, query)
    if _VERSION_IN_PATH.fullmatch(folded):
        return _wrong_version(NEWEST_EVENT_VERSIONS)
    return Refusal(reason=Reason.UNKNOWN_PATH, message="Not found. There is nothing at this path.")


def _for_events(request: Request, query: str) -> Operation:
    if request.method not in {"GET", "POST"}:
        return _wrong_method(request, "GET, POST")
    parameters = _parameters(query)
    if isinstance(parameters, Refusal):
        return parameters
    version = EVENT_VERSIONS.get(parameters.get("api-version", ""))
    needs_header = version is None or version.needs_header
    if needs_header and (refusal := guards.metadata_header_refusal(request)):
        return refusal
    if version is None:
        return _wrong_version(NEWEST_EVENT_VERSIONS)
    if request.method == "POST":
        return Approve(request.body)
    wait = _wait(parameters)
    if isinstance(wait, Refusal):
        return wait
    return ReadEvents(version.name, _known_tags(request), wait)


def _for_instance(request: Request, query: str, path: str) -> Operation:
    parameters = _metadata_parameters(request, query)
    if isinstance(parameters, Refusal):
        return parameters
    version = parameters.get("api-version", "")
    if version not in INSTANCE_VERSIONS:
        return _wrong_version(NEWEST_METADATA_VERSIONS)
    format = parameters.get("format", Format.JSON).lower()
    if format not in set(Format):
        return Refusal(
            reason=Reason.WRONG_FORMAT, message="Bad request. format must be json or text."
        )
    return ReadInstance(version, tuple(path.split("/")[3:]), Format(format))


def _for_versions(request: Request, query: str) -> Operation:
    parameters = _metadata_parameters(request, query)
    return parameters if isinstance(parameters, Refusal) else ReadVersions()


def _for_token(request: Request, query: str) -> Operation:
    parameters = _metadata_parameters(request, query)
    if isinstance(parameters, Refusal):
        return in_oauth_words(parameters)
    if parameters.get("api-version", "") not in _TOKEN_VERSIONS:
        return in_oauth_words(_wrong_version(NEWEST_METADATA_VERSIONS))
    audience = _decoded(parameters.get("resource", ""))
    client_id = _decoded(parameters.get("client_id", ""))
    if not audience:
        return in_oauth_words(
            Refusal(
                reason=Reason.BAD_QUERY,
                message="Bad request. resource must be the service the token is for, URL-encoded.",
            )
        )
    if client_id is None:
        return in_oauth_words(
            Refusal(reason=Reason.BAD_QUERY, message="Bad request. client_id is not a client id.")
        )
    return ReadToken(audience, client_id)


def _for_readiness(request: Request, query: str) -> Operation:
    """Ours, and so without an api-version."""
    if request.method not in {"GET", "PUT"}:
        return _wrong_method(request, "GET, PUT")
    parameters = _parameters(query)
    if isinstance(parameters, Refusal):
        return parameters
    if refusal := guards.metadata_header_refusal(request):
        return refusal
    try:
        event_id = parse_event_id(parameters.get("event", ""))
    except InvalidIdError:
        return _bad_query("event must be an EventId, which is a GUID")
    if request.method == "GET":
        return ReadReadiness(event_id)
    standing = parameters.get("standing", Standing.READY).lower()
    if standing not in set(Standing):
        return _bad_query(f"standing must be one of {', '.join(Standing)}")
    return ReportReadiness(event_id, Standing(standing))


def in_oauth_words(refusal: Refusal) -> Refusal:
    """In the form that clients of the identity endpoint read."""
    return replace(refusal, oauth_error="invalid_request")


def _decoded(value: str) -> str | None:
    """None if the value can't be decoded, can't be printed, or is too long."""
    try:
        text = unquote_plus(value, errors="strict")
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() and len(text) <= _LONGEST_NAME else None


def _metadata_parameters(request: Request, query: str) -> Mapping[str, str] | Refusal:
    """The query of a path that only takes GET, and only with the Metadata header."""
    if request.method != "GET":
        return _wrong_method(request, "GET")
    parameters = _parameters(query)
    if isinstance(parameters, Refusal):
        return parameters
    return guards.metadata_header_refusal(request) or parameters


def _parameters(query: str) -> Mapping[str, str] | Refusal:
    """By name in lower case. Values are not percent-decoded: hardly any of ours needs it."""
    parameters: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        if name.lower() in parameters:
            return Refusal(
                reason=Reason.BAD_QUERY,
                message="Bad request. A query parameter was given more than once.",
            )
        parameters[name.lower()] = value
    return parameters


def _wait(parameters: Mapping[str, str]) -> Wait | Refusal | None:
    """The long poll, which is ours: `wait` and `last-incarnation`."""
    wait, last = parameters.get("wait"), parameters.get("last-incarnation")
    if wait is None and last is None:
        return None
    try:
        length = parse_duration(wait or "")
    except InvalidDurationError:
        return _bad_query("wait must be a duration, like 60s")
    if last is not None and not _INCARNATION.fullmatch(last):
        return _bad_query("last-incarnation must be a whole number below 2147483648")
    seconds = min(length, LONGEST_POLL).total_seconds()
    return Wait(seconds, None if last is None else int(last))


def _bad_query(what: str) -> Refusal:
    return Refusal(reason=Reason.BAD_QUERY, message=f"Bad request. {what}.")


def _known_tags(request: Request) -> frozenset[str]:
    """Incarnations in If-None-Match: quoted as in RFC 9110, or bare as in Azure's Node sample."""
    return frozenset(
        tag.strip().removeprefix("W/").strip('"')
        for value in request.values("if-none-match")
        for tag in value.split(",")
    )


def _wrong_method(request: Request, allowed: str) -> Refusal:
    return Refusal(
        reason=Reason.WRONG_METHOD,
        message=f"The method {request.method} is not supported here.",
        allowed=allowed,
    )


def _wrong_version(newest: tuple[str, ...]) -> Refusal:
    return Refusal(
        reason=Reason.WRONG_VERSION,
        message=(
            "Bad request. api-version is invalid or was not specified in the request."
            " For more information refer to aka.ms/azureimds"
        ),
        newest_versions=newest,
    )
