"""One operation of ARM as a value, and how a request finds it.

Invariant: paths are compared in any letter case, and values keep theirs.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from http import HTTPStatus
from typing import Final

from forewarned.control.arm.answers import ArmAnswer
from forewarned.control.arm.errors import ArmError, not_found
from forewarned.control.arm.requests import Asked
from forewarned.control.arm.services import ArmServices
from forewarned.security.identities import Role
from forewarned.service.azure.resource_ids import COMPUTE
from forewarned.service.ports import Snapshot, Transaction

SUBSCRIPTION: Final = "/subscriptions/{subscription}"
GROUP: Final = f"{SUBSCRIPTION}/resourceGroups/{{group}}"
AT_LOCATION: Final = f"{SUBSCRIPTION}/providers/{COMPUTE}/locations/{{location}}"

Answer = Callable[[ArmServices, Asked], Awaitable[ArmAnswer]]
Question = Callable[[Snapshot, Asked], ArmAnswer]
Decision = Callable[[Transaction, Asked], ArmAnswer]
"""A transaction function with its answer. It is run again after a lost race."""


class Content(Enum):
    """What body an operation takes."""

    NONE = "none"
    """Whatever is sent is not looked at."""
    OPTIONAL = "optional"
    """A JSON object, or nothing."""
    REQUIRED = "required"
    """A JSON object."""
    DEPLOYMENT = "deployment"
    """A JSON object with a template as people write it: comments and all."""
    FORM = "form"
    """The fields of a form: `Asked.body` has a text for each."""


@dataclass(frozen=True, kw_only=True)
class Operation:
    method: str
    path: str
    """A template: `/subscriptions/{subscription}/resourceGroups/{group}`."""
    answer: Answer
    needs: Role | None
    """The role that callers need; None for an operation without sign-in."""
    content: Content = Content.NONE
    is_versioned: bool = True
    """Whether api-version must be given."""

    @cached_property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.path.strip("/").split("/"))

    @cached_property
    def shape(self) -> tuple[str | None, ...]:
        """Fixed parts in folded letters, None for each value."""
        return tuple(None if _is_value(part) else part.casefold() for part in self.parts)

    def values(self, segments: tuple[str, ...]) -> dict[str, str]:
        return {
            part[1:-1]: value
            for part, value in zip(self.parts, segments, strict=True)
            if _is_value(part)
        }


def read(path: str, question: Question) -> Operation:
    return Operation(method="GET", path=path, answer=asking(question), needs=Role.READER)


def read_fixed(path: str, tell: Callable[[Asked], ArmAnswer]) -> Operation:
    """For what does not depend on the store."""
    return Operation(method="GET", path=path, answer=telling(tell), needs=Role.READER)


def open_read(path: str, tell: Callable[[Asked], ArmAnswer]) -> Operation:
    """For callers that have not signed in yet; no api-version needed."""
    return Operation(method="GET", path=path, answer=telling(tell), needs=None, is_versioned=False)


def head(path: str, question: Question) -> Operation:
    return Operation(method="HEAD", path=path, answer=asking(question), needs=Role.READER)


def put(path: str, decision: Decision) -> Operation:
    return _write("PUT", path, decision, content=Content.REQUIRED)


def patch(path: str, decision: Decision) -> Operation:
    return _write("PATCH", path, decision, content=Content.REQUIRED)


def delete(path: str, decision: Decision) -> Operation:
    return _write("DELETE", path, decision)


def post(path: str, decision: Decision, *, needs: Role = Role.ADMIN) -> Operation:
    """Restarts, redeployments, evictions and maintenance need a maintainer, approvals an approver.

    A body may always be left out: an operation that can't go without one says so itself.
    """
    return _write("POST", path, decision, content=Content.OPTIONAL, needs=needs)


def _write(
    method: str,
    path: str,
    decision: Decision,
    *,
    content: Content = Content.NONE,
    needs: Role = Role.ADMIN,
) -> Operation:
    async def answer(services: ArmServices, asked: Asked) -> ArmAnswer:
        return await services.engine.decide(lambda tx: decision(tx, asked))

    return Operation(method=method, path=path, answer=answer, needs=needs, content=content)


def asking(question: Question) -> Answer:
    async def answer(services: ArmServices, asked: Asked) -> ArmAnswer:
        return await services.engine.ask(lambda snapshot: question(snapshot, asked))

    return answer


def telling(tell: Callable[[Asked], ArmAnswer]) -> Answer:
    async def answer(_: ArmServices, asked: Asked) -> ArmAnswer:
        return tell(asked)

    return answer


class Router:
    """Finds operations. Where a fixed part and a value both fit, the fixed part does."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        by_shape: dict[tuple[str | None, ...], dict[str, Operation]] = {}
        for each in operations:
            by_method = by_shape.setdefault(each.shape, {})
            if each.method in by_method:
                raise ValueError(f"two operations are at {each.method} {each.path}")
            by_method[each.method] = each
        self._by_length: dict[int, list[tuple[tuple[str | None, ...], dict[str, Operation]]]] = {}
        for shape in sorted(by_shape, key=lambda shape: [part is None for part in shape]):
            self._by_length.setdefault(len(shape), []).append((shape, by_shape[shape]))

    def find(self, method: str, segments: tuple[str, ...]) -> tuple[Operation, dict[str, str]]:
        """The operation and the values in its path. Raises ArmError."""
        by_method = self._at(segments)
        if by_method is None:
            raise _nothing_there(segments)
        found = by_method.get(method)
        if found is None:
            raise _wrong_method(method, by_method)
        return found, found.values(segments)

    def _at(self, segments: tuple[str, ...]) -> Mapping[str, Operation] | None:
        folded = tuple(map(str.casefold, segments))
        for shape, by_method in self._by_length.get(len(segments), ()):
            if all(
                part is None or part == given for part, given in zip(shape, folded, strict=True)
            ):
                return by_method
        return None


_SERVED: Final = (
    "resource groups and deployments, virtual machines, scale sets, availability sets"
    " and the scheduled events of Microsoft.Maintenance"
)


def _nothing_there(segments: tuple[str, ...]) -> ArmError:
    path = "/" + "/".join(segments)
    return not_found(
        "InvalidResourceType",
        f"Nothing is served at '{path[:300]}': this server supports {_SERVED}.",
    )


def _wrong_method(method: str, by_method: Iterable[str]) -> ArmError:
    allowed = ", ".join(sorted(by_method))
    return ArmError(
        HTTPStatus.METHOD_NOT_ALLOWED,
        "MethodNotAllowed",
        f"This path accepts {allowed}, not {method[:20]}.",
        headers={"Allow": allowed},
    )


def _is_value(part: str) -> bool:
    return part.startswith("{")
