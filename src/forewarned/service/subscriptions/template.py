"""A text of the subscriber's own, filled with a message: a small part of Jinja2, and no more.

Who may write a template need not be trusted with the server (S15). So a template reaches nothing
but the plain values it is given: no calls, no attributes of objects, no loops but over those
values, no variables that could grow. Jinja2's sandbox is beneath as a second wall. And a template
ends: its length, its nesting and each text it makes on the way have limits, and so has its work,
which is counted rather than timed: what fails for a message fails at every attempt.
"""

import threading
import traceback
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from jinja2 import StrictUndefined, TemplateSyntaxError, meta, nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer
from typing_extensions import override

from forewarned.service.subscriptions.content import content, samples
from forewarned.service.subscriptions.errors import BadTemplateError
from forewarned.service.subscriptions.model import Message
from forewarned.service.subscriptions.template_filters import (
    FILTER_NAMES,
    LONGEST_TEXT,
    TEST_NAMES,
    LimitError,
    Spend,
    concatenated,
    each_counted,
    filters,
    looked_at,
    made_list,
    refuse_long_sum,
    refuse_longer,
    tests,
)

__all__ = ["LONGEST_TEMPLATE", "LONGEST_TEXT", "TextTemplate"]

LONGEST_TEMPLATE: Final = 16 * 1024
_MOST_WORK: Final = 1_000_000
"""Parts of the template that are looked at, and characters they make: a tenth of a second."""
# Filters that no template can name. All that is looped over passes the first, and what Jinja2 does
# with other values the others.
_COUNTED: Final = "each counted"
_CONCATENATED: Final = "all concatenated"
_MADE: Final = "made list"
_LOOKED_AT: Final = "looked at"
_LARGEST_INTEGER: Final = 2**64
_DEEPEST: Final = 50
_DEEPEST_LOOP: Final = 2
_FILE: Final = "<template>"
_LOOP: Final = frozenset({"index", "index0", "first", "last", "length", "revindex", "revindex0"})
# No Call, so nothing runs but filters and tests; no Mul, Pow and Mod, which make long texts of
# short ones; no Assign and With, which do the same in a row.
_ALLOWED: Final = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.Name,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.Const,
    nodes.List,
    nodes.Tuple,
    nodes.If,
    nodes.For,
    nodes.CondExpr,
    nodes.Filter,
    nodes.Test,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Neg,
    nodes.Add,
    nodes.Sub,
    nodes.Div,
    nodes.FloorDiv,
    nodes.Concat,
    nodes.Keyword,
)
_WORDS: Final[Mapping[type[nodes.Node], str]] = {
    nodes.Call: "calls are not allowed",
    nodes.Assign: "{% set %} is not allowed",
    nodes.AssignBlock: "{% set %} is not allowed",
    nodes.Include: "{% include %} is not allowed",
    nodes.Import: "{% import %} is not allowed",
    nodes.FromImport: "{% from %} is not allowed",
    nodes.Extends: "{% extends %} is not allowed",
    nodes.Macro: "{% macro %} is not allowed",
    nodes.CallBlock: "{% call %} is not allowed",
    nodes.FilterBlock: "{% filter %} is not allowed",
    nodes.With: "{% with %} is not allowed",
    nodes.Block: "{% block %} is not allowed",
    nodes.Scope: "{% autoescape %} is not allowed",
    nodes.Dict: "a dictionary in braces is not allowed",
    nodes.Pos: "a unary + is not allowed",
    nodes.Mul: "* is not allowed",
    nodes.Pow: "** is not allowed",
    nodes.Mod: "% is not allowed",
}


class TextTemplate:
    def __init__(self, text: str) -> None:
        """Raises BadTemplateError for what could fail for some message, or do harm."""
        if len(text) > LONGEST_TEMPLATE:
            raise BadTemplateError(f"it is longer than {LONGEST_TEMPLATE} characters")
        self._left = 0
        self._one_at_a_time = threading.Lock()
        environment = _Environment(self._spend)
        try:
            tree = _parsed(environment, text)
            _refuse_unfit(tree)
            _count_iterations(tree)
            _Limiting().visit(tree)
            self._template = environment.from_string(tree)
        except TemplateSyntaxError as error:
            raise BadTemplateError(
                error.message or "it is not a Jinja2 template", error.lineno
            ) from error
        except RecursionError as error:
            raise BadTemplateError("it is nested too deeply") from error
        for message in samples():
            self.render(message)

    def render(self, message: Message) -> str:
        """Raises BadTemplateError. May be called in any thread."""
        with self._one_at_a_time:
            return self._render(message)

    def _render(self, message: Message) -> str:
        self._left = _MOST_WORK
        made: list[str] = []
        length = 0
        try:
            for part in self._template.generate(content(message)):
                self._spend(1 + len(part))
                made.append(part)
                length += len(part)
                refuse_longer(length)
            text = "".join(made)
            # It is sent as UTF-8, which does not have all that a literal can say.
            text.encode()
        except Exception as error:
            # Filters fail with whatever they please, and a template that fails once fails again.
            why = f"for an event that is {message.status}: {error}"
            raise BadTemplateError(why, _line_of(error)) from error
        return text

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise LimitError("it does too much work: its loops run too long")


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+"})

    def __init__(self, spend: Spend) -> None:
        super().__init__(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
        self.globals.clear()
        self._spend = spend
        self.filters = {
            **filters(spend),
            _COUNTED: partial(each_counted, spend),
            _CONCATENATED: partial(concatenated, spend),
            _MADE: partial(made_list, spend),
            _LOOKED_AT: partial(looked_at, spend),
        }
        self.tests = tests(spend)  # type: ignore[assignment]  # typed as functions of any kind

    # Any: values of a template.
    @override
    def getattr(self, obj: Any, attribute: str) -> Any:
        """A field of a table. No object's attribute is read, but those of a loop."""
        if isinstance(obj, LoopContext) and attribute in _LOOP:
            return getattr(obj, attribute)
        return self.getitem(obj, attribute)

    @override
    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Undefined):
            return obj[argument]
        try:
            return obj[argument]
        except (AttributeError, TypeError, LookupError):
            if isinstance(obj, str | list):
                raise SecurityError(f"there is no {argument!r} in a string or a list") from None
            return self.undefined(obj=obj, name=argument)

    @override
    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        refuse_long_sum(self._spend, left, right)
        return super().call_binop(context, operator, left, right)


def _count_iterations(tree: nodes.Template) -> None:
    for loop in tree.find_all(nodes.For):
        work = nodes.Const(1 + sum(1 for _ in loop.find_all(nodes.Node)))
        loop.iter = nodes.Filter(loop.iter, _COUNTED, [work], [], None, None, lineno=loop.lineno)


def _parsed(environment: _Environment, text: str) -> nodes.Template:
    try:
        return environment.parse(text, filename=_FILE)
    except ValueError as error:
        # Python reads no longer ones.
        raise BadTemplateError("it has a number with too many digits") from error


class _Limiting(NodeTransformer):
    """Has what makes or compares values pass filters that count it."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802  # Jinja2's names
        self.generic_visit(node)
        return _passed(nodes.List(node.nodes, lineno=node.lineno), _CONCATENATED)

    def visit_List(self, node: nodes.List) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _passed(node, _MADE)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return node if node.ctx == "store" else _passed(node, _MADE)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _passed(node, _LOOKED_AT) if isinstance(node.arg, nodes.Slice) else node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.expr = _passed(node.expr, _LOOKED_AT)
        for each in node.ops:
            each.expr = _passed(each.expr, _LOOKED_AT)
        return node


def _passed(node: nodes.Expr, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


def _refuse_unfit(tree: nodes.Template) -> None:
    _refuse_below(tree, depth=0, loops=0)
    known = content(next(samples()))
    unknown = (meta.find_undeclared_variables(tree) | {"self"}) - known.keys()
    for name in tree.find_all(nodes.Name):
        if name.name in unknown:
            why = f"there is no {name.name!r}: use one of {', '.join(known)}"
            raise BadTemplateError(why, name.lineno)


def _refuse_below(node: nodes.Node, *, depth: int, loops: int) -> None:
    if not isinstance(node, _ALLOWED):
        why = _WORDS.get(type(node), "this part of Jinja2 is not allowed")
        raise BadTemplateError(why, node.lineno)
    if isinstance(node, nodes.Filter) and node.name not in FILTER_NAMES:
        known = ", ".join(FILTER_NAMES)
        raise BadTemplateError(f"there is no filter {node.name!r}: use one of {known}", node.lineno)
    if isinstance(node, nodes.Test) and node.name not in TEST_NAMES:
        raise BadTemplateError(f"there is no test {node.name!r}", node.lineno)
    if isinstance(node, nodes.Getattr) and node.attr.startswith("_"):
        raise BadTemplateError(f"{node.attr!r} is not allowed", node.lineno)
    if isinstance(node, nodes.Const) and _is_large(node.value):
        raise BadTemplateError("a number is too large", node.lineno)
    if isinstance(node, nodes.For):
        loops += 1
        if node.recursive:
            raise BadTemplateError("a recursive loop is not allowed", node.lineno)
    if loops > _DEEPEST_LOOP:
        raise BadTemplateError(f"loops may be {_DEEPEST_LOOP} deep at most", node.lineno)
    if depth > _DEEPEST:
        raise BadTemplateError("it is nested too deeply", node.lineno)
    for child in node.iter_child_nodes():
        _refuse_below(child, depth=depth + 1, loops=loops)


def _is_large(value: object) -> bool:
    return isinstance(value, int) and value >= _LARGEST_INTEGER


def _line_of(error: BaseException) -> int:
    """Jinja2 puts the template's own lines into the traceback."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == _FILE
    ]
    return (lines[-1] or 0) if lines else 0
