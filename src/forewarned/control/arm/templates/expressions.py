"""Expressions in templates: `[concat(resourceId('Microsoft.Network/loadBalancers', 'lb'), '/x')]`.

Only what the templates of clients have is known. An expression with anything else in it is left as
the text it is.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from forewarned.control.arm.errors import ArmError, bad_request
from forewarned.service.azure.resource_ids import group_path

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>\d{1,9})|(?P<name>[A-Za-z_]\w*)|(?P<mark>[()\[\],.]))\s*"
)
_DEEPEST: Final = 32
_MOST_VALUES: Final = 100_000
_TEXT_AS_VALUES: Final = 16
"""So many characters that an expression yields count as one value."""


def nothing(_: str) -> None:
    """There is no resource to refer to."""


class Allowance:
    """How much a template may grow into: a few variables can name each other by the billion."""

    def __init__(self) -> None:
        self._left = _MOST_VALUES

    def spend(self, result: object = None) -> None:
        """For one value, and as much as `result` is larger than that."""
        self._left -= 1
        if isinstance(result, str):
            self._left -= len(result) // _TEXT_AS_VALUES
        elif isinstance(result, list):
            self._left -= len(result)
        if self._left < 0:
            raise invalid_template("it grows too large when its expressions are evaluated")


# Any, here and below: what a template's JSON is made of.
@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an expression can refer to."""

    subscription: str
    group: str
    location: str
    """The resource group's."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """By name in lower case. None for secrets."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    """By name in lower case, as they are written."""
    reference: Callable[[str], Mapping[str, Any] | None] = nothing
    """A resource by its path or name; None for one that is not there."""
    index: int = 0
    """Of a copy."""
    allowance: Allowance = field(default_factory=Allowance)
    """One for all that is evaluated of a template."""


class UnknownExpressionError(Exception):
    """Nothing that is known here."""


def evaluated(value: Any, around: Surroundings, *, depth: int = 0) -> Any:  # JSON
    """The value with its expressions, however deep, put right. Raises ArmError."""
    around.allowance.spend()
    if depth > _DEEPEST * 2:
        raise invalid_template("its expressions refer to each other in a cycle")
    match value:
        case dict():
            return {name: evaluated(each, around, depth=depth + 1) for name, each in value.items()}
        case list():
            return [evaluated(each, around, depth=depth + 1) for each in value]
        case str() if value.startswith("[["):
            return value[1:]
        case str() if value.startswith("[") and value.endswith("]"):
            try:
                return _Expression(value[1:-1], around, depth).value()
            except UnknownExpressionError:
                return value
        case _:
            return value


def invalid_template(why: str) -> ArmError:
    return bad_request("InvalidTemplate", f"Deployment template validation failed: {why}.")


class _Expression:
    """One expression, read from left to right."""

    def __init__(self, text: str, around: Surroundings, depth: int) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0
        self._around = around
        self._depth = depth

    def value(self) -> Any:  # JSON
        result = self._operand(0)
        if self._at < len(self._tokens):
            raise UnknownExpressionError
        return result

    def _operand(self, nesting: int) -> Any:
        if nesting > _DEEPEST:
            raise UnknownExpressionError
        kind, text = self._next()
        if kind == "text":
            result: Any = text[1:-1].replace("''", "'")
        elif kind == "number":
            result = int(text)
        elif kind == "name" and self._took("("):
            result = self._call(text, list(self._arguments(nesting)))
        else:
            raise UnknownExpressionError
        return self._inside(result, nesting)

    def _arguments(self, nesting: int) -> Iterator[Any]:
        if self._took(")"):
            return
        while True:
            yield self._operand(nesting + 1)
            if self._took(")"):
                return
            if not self._took(","):
                raise UnknownExpressionError

    def _inside(self, result: Any, nesting: int) -> Any:
        """`.name` and `[0]` after an operand."""
        while True:
            if self._took("."):
                kind, name = self._next()
                if kind != "name" or not isinstance(result, Mapping):
                    raise UnknownExpressionError
                result = _by_name(result, name)
            elif self._took("["):
                key = self._operand(nesting + 1)
                if not self._took("]"):
                    raise UnknownExpressionError
                result = _item(result, key)
            else:
                return result

    def _call(self, name: str, arguments: list[Any]) -> Any:
        function = _FUNCTIONS.get(name.lower())
        if function is None:
            raise UnknownExpressionError
        result = function(self._around, self._depth, arguments)
        self._around.allowance.spend(result)
        return result

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise UnknownExpressionError
        self._at += 1
        return self._tokens[self._at - 1]

    def _took(self, mark: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] == ("mark", mark):
            self._at += 1
            return True
        return False


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise UnknownExpressionError
        yield found.lastgroup, found[found.lastgroup]
        at = found.end()


def _by_name(holder: Mapping[str, Any], name: str) -> Any:
    for known, value in holder.items():
        if known.casefold() == name.casefold():
            return value
    raise UnknownExpressionError


def _item(holder: Any, key: Any) -> Any:
    if isinstance(holder, list | tuple) and isinstance(key, int) and key < len(holder):
        return holder[key]
    if isinstance(holder, Mapping) and isinstance(key, str):
        return _by_name(holder, key)
    raise UnknownExpressionError


# --- functions -----------------------------------------------------------------------------------


def _parameters(around: Surroundings, _: int, arguments: list[Any]) -> Any:
    name = _only_text(arguments)
    if name.lower() not in around.parameters:
        raise invalid_template(f"the template parameter '{name[:100]}' is not found")
    return around.parameters[name.lower()]


def _variables(around: Surroundings, depth: int, arguments: list[Any]) -> Any:
    name = _only_text(arguments)
    if name.lower() not in around.variables:
        raise invalid_template(f"the template variable '{name[:100]}' is not found")
    return evaluated(around.variables[name.lower()], around, depth=depth + 1)


def _concat(_: Surroundings, __: int, arguments: list[Any]) -> Any:
    if arguments and all(isinstance(each, list) for each in arguments):
        return [item for each in arguments for item in each]
    if not all(isinstance(each, str | int) and not isinstance(each, bool) for each in arguments):
        raise UnknownExpressionError
    return "".join(map(str, arguments))


def _resource_id(around: Surroundings, _: int, arguments: list[Any]) -> str:
    """`resourceId([subscription,] [group,] type, name, …)`."""
    texts = [each for each in arguments if isinstance(each, str)]
    at = next((at for at, each in enumerate(texts) if "/" in each), len(texts))
    before, after = texts[:at], texts[at:]
    types = after[0].split("/") if after else []
    names = after[1:]
    if len(texts) < len(arguments) or len(types) != len(names) + 1 or len(before) > 2:
        raise UnknownExpressionError
    group = before[-1] if before else around.group
    subscription = before[0] if len(before) > 1 else around.subscription
    return resource_path(subscription, group, after[0], names)


def resource_path(subscription: str, group: str, type_: str, names: Sequence[str]) -> str:
    """A type has one part more than there are names."""
    namespace, *types = type_.split("/")
    parts = [part for pair in zip(types, names, strict=True) for part in pair]
    return "/".join([group_path(subscription, group), "providers", namespace, *parts])


def _reference(around: Surroundings, _: int, arguments: list[Any]) -> Any:
    """A resource's properties, or all of it where the third argument says so."""
    if not arguments or not isinstance(arguments[0], str):
        raise UnknownExpressionError
    found = around.reference(arguments[0])
    if found is None:
        raise bad_request(
            "InvalidTemplate",
            f"Unable to process template language expressions: the resource '{arguments[0][:300]}'"
            " is not defined.",
        )
    is_full = isinstance(arguments[-1], str) and arguments[-1].casefold() == "full"
    return found if is_full else found.get("properties", {})


def _copy_index(around: Surroundings, _: int, arguments: list[Any]) -> int:
    """`copyIndex()`, `copyIndex(1)`, `copyIndex('loop', 1)`."""
    numbers = [each for each in arguments if isinstance(each, int)]
    return around.index + (numbers[0] if numbers else 0)


def _only_text(arguments: list[Any]) -> str:
    if len(arguments) != 1 or not isinstance(arguments[0], str):
        raise UnknownExpressionError
    return arguments[0]


_FUNCTIONS: Final[Mapping[str, Callable[[Surroundings, int, list[Any]], Any]]] = {
    "concat": _concat,
    "copyindex": _copy_index,
    "parameters": _parameters,
    # Whatever its version, a reference is answered the same.
    "providers": lambda _, __, arguments: {
        "apiVersions": ["2024-11-01"],
        "locations": [],
        "resourceType": arguments[-1:],
    },
    "reference": _reference,
    "resourcegroup": lambda around, _, __: {
        "id": group_path(around.subscription, around.group),
        "name": around.group,
        "location": around.location,
    },
    "resourceid": _resource_id,
    "subscription": lambda around, _, __: {
        "id": f"/subscriptions/{around.subscription}",
        "subscriptionId": around.subscription,
    },
    "tolower": lambda _, __, arguments: _only_text(arguments).lower(),
    "variables": _variables,
}
