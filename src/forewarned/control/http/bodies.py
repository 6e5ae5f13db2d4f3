"""Reading requests: bodies and queries into shapes, and who is asking.

What a decoder can't read is refused with the path of the field.
"""

import re
from typing import Final, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request

from forewarned.control.http.errors import BadRequestError, BodyTooLargeError
from forewarned.control.v1.wire import decode, read_span
from forewarned.core.model import Actor

ACTOR_HEADER: Final = "Forewarned-Actor"

T = TypeVar("T")

_LONGEST_ACTOR: Final = 64
OWN_ACTORS: Final = frozenset(
    {
        *("actuator", "anonymous", "console", "drain", "fleet file", "local", "policy"),
        *("publisher", "readers", "scenario", "server", "settings", "start-up file", "test"),
        *("time", "unknown", "upgrade"),
    }
)
"""Names that the product itself goes by in history: a label must not be taken for one of them."""
_ENUM: Final = "Invalid enum value"
_PLACE: Final = re.compile(r"(?P<what>.*) - at `\$(?P<path>.*)`", re.DOTALL)
_NAMED: Final = re.compile(r"Object (?:contains unknown|missing required) field `(?P<name>.*)`")


async def optional_body(request: Request, shape: type[T], *, largest: int) -> T:
    """An empty body is an empty object: where every field may be left out, so may the body."""
    found = await raw(request, largest)
    return _decoded(found if found.strip() else b"{}", shape)


async def body(request: Request, shape: type[T], *, largest: int) -> T:
    return _decoded(await raw(request, largest), shape)


def query(request: Request, shape: type[T]) -> T:
    given: dict[str, str] = {}
    # Where there is none, as with all that changes something, it takes longer to find that out.
    pairs = request.query_params.multi_items() if request.scope["query_string"] else ()
    for name, value in pairs:
        if name in given:
            raise BadRequestError(f"{name} is given twice", field=name)
        given[name] = value
    try:
        return msgspec.convert(given, shape, strict=False, dec_hook=read_span)
    except msgspec.ValidationError as error:
        raise _invalid(error, shape) from None


async def form(request: Request, *, largest: int, most_fields: int) -> list[tuple[str, str]]:
    """The fields of a form, in their order. Raises BadRequestError, BodyTooLargeError."""
    return form_fields((await raw(request, largest)), most=most_fields)


def form_fields(raw: bytes, *, most: int) -> list[tuple[str, str]]:
    """What a form or a query says. Raises BadRequestError."""
    try:
        return parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=most
        )
    except ValueError:
        raise BadRequestError("the form or query can't be read") from None


def address(request: Request) -> str:
    client = request.client
    return "" if client is None else client.host


def actor(request: Request) -> Actor:
    """The header is a label that makes history easier to read. It proves nothing."""
    label = request.headers.get(ACTOR_HEADER, "")
    return Actor(name=label if _is_sane(label) else "control", address=address(request))


def _decoded(raw: bytes, shape: type[T]) -> T:
    try:
        return decode(raw, shape)
    except msgspec.ValidationError as error:
        raise _invalid(error, shape) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequestError(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise BadRequestError("the body is nested too deeply") from None


def _is_sane(label: str) -> bool:
    return (
        0 < len(label) <= _LONGEST_ACTOR
        and label.isascii()
        and label.isprintable()
        and label == label.strip()
        and label not in OWN_ACTORS
        and not label.startswith("vm:")
    )


async def raw(request: Request, largest: int) -> bytes:
    """The whole body. Raises BodyTooLargeError."""
    declared = request.headers.get("Content-Length", "")
    if declared.isdecimal() and int(declared[:20]) > largest:
        raise BodyTooLargeError(largest)
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        # A body sent in chunks declares no length.
        if len(received) > largest:
            raise BodyTooLargeError(largest)
    return bytes(received)


def _invalid(error: msgspec.ValidationError, shape: type) -> BadRequestError:
    found = _PLACE.fullmatch(str(error))
    what, path = (found["what"], found["path"]) if found else (str(error), "")
    if named := _NAMED.fullmatch(what):
        path = f"{path}.{named['name']}"
    field = path.removeprefix(".")
    if what.startswith(_ENUM) and (choices := _choices(shape, field)):
        what = f"{what.removeprefix(_ENUM).strip()} is not one of {choices}"
    return BadRequestError(what[:1].lower() + what[1:], field=field or None)


def _choices(shape: type, field: str) -> str:
    """What an enum allows: the decoder says only that something else was sent."""
    known = msgspec.inspect.type_info(shape)
    if isinstance(known, msgspec.inspect.StructType):
        for each in known.fields:
            if each.encode_name == field:
                return ", ".join(_values(each.type))
    return ""


def _values(type_: msgspec.inspect.Type) -> list[str]:
    if isinstance(type_, msgspec.inspect.Metadata):
        return _values(type_.type)
    if isinstance(type_, msgspec.inspect.UnionType):
        return [value for choice in type_.types for value in _values(choice)]
    return list(map(str, type_.cls)) if isinstance(type_, msgspec.inspect.EnumType) else []
