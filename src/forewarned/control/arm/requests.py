"""A request of ARM's clients, read and checked: path, query, body and who sent it.

Nothing in here depends on which operation it is for. What can't be read is refused before
anything is done.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import msgspec
from starlette.requests import Request

from forewarned.control.arm.errors import ArmError, bad_request
from forewarned.control.arm.templates.template_json import UnendedCommentError, standard_json
from forewarned.control.http import bodies
from forewarned.control.http.errors import BadRequestError
from forewarned.core.model import Actor
from forewarned.service.azure.context import AzureContext
from forewarned.service.azure.models.documents import Json
from forewarned.service.azure.resource_ids import ResourceId, same

LARGEST_BODY: Final = 4 << 20
"""ARM's own limit."""
DEEPEST_BODY: Final = 64
"""Levels; the templates of `az` have fewer than twenty."""
LONGEST_QUERY: Final = 8 << 10
"""Characters: what other servers accept for a whole URL."""
_MOST_FIELDS: Final = 50

_VERSION: Final = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])(?:-preview)?")
_SEGMENT: Final = re.compile(rb"(?:[A-Za-z0-9\-._~!$'()*+,;=:@&]|%[0-9A-Fa-f]{2})*")
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_NO_PARENT: Final = re.compile(rb"(/providers/[^/]+)//(?=[^/])", re.IGNORECASE)
# What no name in Azure has, and what would change the meaning of a link it is put into.
_NEVER: Final = frozenset('/\\?#%<>&"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an operation is told. Links in its answer are made from `root`."""

    path: Mapping[str, str]
    """The values of the template's names, as they were written."""
    query: Mapping[str, str]
    """By name in lower case: `$expand`, `forcedeletion`."""
    body: Json | None
    """None where none was sent."""
    by: Actor
    root: str
    """`https://localhost:8171`, by the name that the caller uses."""
    url: str
    """The path as it was sent, for links to further pages."""
    api_version: str
    """Empty where the operation needs none and none was given."""
    context: AzureContext
    """What use cases take, for this request. Its location is the one place this server has."""

    def option(self, name: str) -> str | None:
        """An option of the query, by name in any letter case; None if it was not given."""
        return self.query.get(name.lower())

    def is_set(self, name: str) -> bool:
        """Whether an option of the query is `true`."""
        return (self.option(name) or "").casefold() == "true"

    def is_of_list(self, location: str) -> bool:
        """Whether a resource there belongs in the list: of the path's location, or of all."""
        wanted = self.path.get("location")
        # `West Europe` and `westeurope` are the same.
        return wanted is None or same(wanted.replace(" ", ""), location.replace(" ", ""))

    def id_of(self, type_: str, name: str) -> ResourceId:
        """Of a resource in the resource group that the path names."""
        return ResourceId(
            subscription=self.path["subscription"], group=self.path["group"], type=type_, name=name
        )

    def operation_url(self, operation_id: str) -> str:
        """Where the status of an operation of this subscription is read."""
        return (
            f"{self.root}/subscriptions/{quote(self.path['subscription'])}"
            f"/providers/Microsoft.Compute/locations/{quote(self.context.location)}"
            f"/operations/{quote(operation_id)}?api-version={self.api_version}"
        )


# --- path ----------------------------------------------------------------------------------------


def segments(raw_path: bytes) -> tuple[str, ...]:
    """The parts of a path, each decoded once. A slash at the end makes no difference.

    So are two after a provider: where the SDK for resources has a parent's path it may be empty,
    and `az vm create` looks in that way whether an availability set or a network is there.
    """
    parts = _NO_PARENT.sub(rb"\1/", raw_path).removesuffix(b"/").split(b"/")[1:]
    return tuple(map(_segment, parts))


def _segment(raw: bytes) -> str:
    if not _SEGMENT.fullmatch(raw):
        raise _bad_path("it has characters that must be percent-encoded, or are encoded wrongly")
    decoded = _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), raw)
    try:
        text = decoded.decode()
    except UnicodeDecodeError:
        raise _bad_path("its percent-encoding is not UTF-8") from None
    if text in {"", ".", ".."}:
        raise _bad_path("it has an empty part, or a part that is only dots")
    if not text.isprintable() or not _NEVER.isdisjoint(text):
        raise _bad_path("it has a part with a character that names can't have")
    return text


def _bad_path(why: str) -> ArmError:
    return bad_request("InvalidRequestUri", f"The path of the request can't be read: {why}.")


# --- query ---------------------------------------------------------------------------------------


def query(raw: bytes) -> dict[str, str]:
    if len(raw) > LONGEST_QUERY:
        raise bad_request(
            "InvalidRequestUri",
            f"The query of the request is longer than {LONGEST_QUERY} characters.",
        )
    try:
        pairs = bodies.form_fields(raw, most=_MOST_FIELDS)
    except BadRequestError:
        raise bad_request("InvalidRequestUri", "The query of the request can't be read.") from None
    given: dict[str, str] = {}
    for name, value in pairs:
        folded = name.lower()
        if folded in given:
            raise bad_request(
                "InvalidRequestUri", f"The query parameter '{name}' is given more than once."
            )
        given[folded] = value
    return given


def checked_version(given: Mapping[str, str]) -> str:
    """Any well-formed one: the clients of one release send a dozen different ones."""
    version = given.get("api-version", "")
    if not version:
        raise bad_request(
            "MissingApiVersionParameter",
            "The api-version query parameter (?api-version=) is required for all requests.",
        )
    if not _VERSION.fullmatch(version):
        raise bad_request(
            "InvalidApiVersionParameter",
            f"The api-version '{version[:40]}' is invalid: expected YYYY-MM-DD,"
            " with or without -preview.",
        )
    return version


# --- body ----------------------------------------------------------------------------------------


async def json_body(request: Request) -> Json | None:
    """An object, or None for an empty body."""
    return _read_json(request, await bodies.raw(request, LARGEST_BODY))


async def deployment_body(request: Request) -> Json | None:
    """As `json_body`, with a template that may have comments."""
    raw = await bodies.raw(request, LARGEST_BODY)
    try:
        return _read_json(request, standard_json(raw))
    except UnendedCommentError as error:
        raise _bad_content(str(error)) from None


def _read_json(request: Request, raw: bytes) -> Json | None:
    if not raw.strip():
        return None
    _require_type(request, "application/json")
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _bad_content(f"it is not JSON: {error}") from None
    except RecursionError:
        raise _too_deep() from None
    if not isinstance(body, dict):
        raise _bad_content("it is not a JSON object")
    _refuse_depth(body)
    return body


async def form_body(request: Request) -> Json | None:
    """The fields of a form, as OAuth's clients send one."""
    raw = await bodies.raw(request, LARGEST_BODY)
    if not raw:
        return None
    _require_type(request, "application/x-www-form-urlencoded")
    try:
        pairs = bodies.form_fields(raw, most=_MOST_FIELDS)
    except BadRequestError:
        raise _bad_content("it is not a form") from None
    fields: Json = {}
    for name, value in pairs:
        if name in fields:
            raise _bad_content(f"the field '{name}' is given more than once")
        fields[name] = value
    return fields


def _require_type(request: Request, wanted: str) -> None:
    given = request.headers.get("Content-Type", wanted).partition(";")[0].strip().lower()
    if given != wanted:
        raise ArmError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            f"The content media type '{given[:80]}' is not supported."
            f" Only '{wanted}' is supported.",
        )


def _refuse_depth(body: object) -> None:
    level = [body]
    for _ in range(DEEPEST_BODY):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise _too_deep()


def _inside(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _too_deep() -> ArmError:
    return _bad_content(f"it is nested deeper than {DEEPEST_BODY} levels")


def _bad_content(why: str) -> ArmError:
    return bad_request("InvalidRequestContent", f"The request content was invalid: {why}.")
