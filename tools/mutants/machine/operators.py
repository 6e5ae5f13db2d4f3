"""The rules by which edits are made: for each kind of syntax, what could stand there instead."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Swap:
    """A field of a node, and what to put into it."""

    owner: ast.AST
    field: str
    index: int | None
    """Which element of the field, if it is a list; None for the whole field."""
    value: Any  # a node, a list of nodes or an operator, as the field has it


Operator = Callable[[Any], Iterator[Swap]]

# Both the boundary and the opposite.
_COMPARISONS: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_OPPOSITES: Final = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
_POLISHING: Final = {"casefold", "lower", "upper", "strip", "lstrip", "rstrip"}
"""Methods without which a text is nearly the same."""
_NONE: Final = ast.Constant(None)


def element(owner: ast.AST, field: str, index: int, value: ast.AST) -> Swap:
    return Swap(owner, field, index, value)


def without(owner: ast.AST, field: str, index: int) -> Swap:
    """The list without one of its elements."""
    rest = [each for number, each in enumerate(getattr(owner, field)) if number != index]
    return Swap(owner, field, None, rest)


def _compare(node: ast.Compare) -> Iterator[Swap]:
    for index, operator in enumerate(node.ops):
        for other in _COMPARISONS[type(operator)]:
            yield element(node, "ops", index, other())
    for comparator in node.comparators:
        if isinstance(comparator, ast.Tuple | ast.Set | ast.List) and len(comparator.elts) > 1:
            for index in range(len(comparator.elts)):
                yield without(comparator, "elts", index)


def _arithmetic(node: ast.BinOp | ast.AugAssign) -> Iterator[Swap]:
    other = _ARITHMETIC.get(type(node.op))
    if other is not None:
        yield Swap(node, "op", None, other())


def _constant(value: object) -> ast.Constant | None:
    match value:
        case bool():
            return ast.Constant(not value)
        case int() | float():
            return ast.Constant(value + 1)
        case str():
            return ast.Constant(f"XX{value}")
        case bytes():
            return ast.Constant(b"XX" + value)
        case _:
            return None


def _condition(node: ast.If | ast.While | ast.IfExp) -> Iterator[Swap]:
    """Comparisons and the like have edits of their own."""
    if not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
        yield Swap(node, "test", None, ast.UnaryOp(ast.Not(), node.test))


def _loop(node: ast.For | ast.AsyncFor) -> Iterator[Swap]:
    yield Swap(node, "iter", None, ast.Tuple([], ast.Load()))


def _comprehension(node: ast.comprehension) -> Iterator[Swap]:
    for index in range(len(node.ifs)):
        yield element(node, "ifs", index, ast.Constant(value=True))


def _handler(node: ast.ExceptHandler) -> Iterator[Swap]:
    if isinstance(node.type, ast.Tuple):
        for index in range(len(node.type.elts)):
            yield without(node.type, "elts", index)


def _elements(node: ast.Set | ast.Dict) -> Iterator[Swap]:
    if isinstance(node, ast.Set):
        if len(node.elts) > 1:
            for index in range(len(node.elts)):
                yield without(node, "elts", index)
        return
    for index in range(len(node.keys)):
        kept = [number for number in range(len(node.keys)) if number != index]
        smaller = ast.Dict([node.keys[n] for n in kept], [node.values[n] for n in kept])
        yield Swap(node, "", None, smaller)


def _slice(node: ast.Slice) -> Iterator[Swap]:
    for field in ("lower", "upper"):
        if getattr(node, field) is not None:
            yield Swap(node, field, None, None)


def _alternatives(node: ast.MatchOr) -> Iterator[Swap]:
    for index in range(len(node.patterns)):
        kept = without(node, "patterns", index)
        yield kept if len(kept.value) > 1 else Swap(node, "", None, kept.value[0])


def _call(node: ast.Call) -> Iterator[Swap]:
    for index, argument in enumerate(node.args):
        if not isinstance(argument, ast.Constant | ast.Starred):
            yield element(node, "args", index, _NONE)
    for index, keyword in enumerate(node.keywords):
        if keyword.arg is not None:
            yield without(node, "keywords", index)
            if not isinstance(keyword.value, ast.Constant):
                yield Swap(keyword, "value", None, _NONE)
    match node.func:
        case ast.Name(id=name) if name in _OPPOSITES:
            yield Swap(node, "func", None, ast.Name(_OPPOSITES[name], ast.Load()))
        case ast.Name(id="reversed"):
            yield Swap(node, "", None, node.args[0])
        case ast.Attribute(value=text, attr=name) if name in _POLISHING:
            yield Swap(node, "", None, text)


def _boolean(node: ast.BoolOp) -> Iterator[Swap]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield Swap(node, "op", None, other)
    for index in range(len(node.values)):
        kept = without(node, "values", index)
        yield kept if len(kept.value) > 1 else Swap(node, "", None, kept.value[0])


def _choice(node: ast.IfExp) -> Iterator[Swap]:
    yield Swap(node, "", None, node.body)
    yield Swap(node, "", None, node.orelse)


def _unary(node: ast.UnaryOp) -> Iterator[Swap]:
    if isinstance(node.op, ast.Not | ast.USub):
        yield Swap(node, "", None, node.operand)


def _binary(node: ast.BinOp) -> Iterator[Swap]:
    yield from _arithmetic(node)
    if isinstance(node.op, ast.BitOr):
        yield Swap(node, "", None, node.left)
        yield Swap(node, "", None, node.right)


def _changed_constant(node: ast.Constant) -> Iterator[Swap]:
    other = _constant(node.value)
    if other is not None:
        yield Swap(node, "", None, other)


def _case(node: ast.match_case) -> Iterator[Swap]:
    yield Swap(node, "guard", None, ast.Constant(value=False))
    if node.guard is not None:
        yield Swap(node, "guard", None, ast.Constant(value=True))


def _yield(node: ast.Yield | ast.Lambda) -> Iterator[Swap]:
    field = "body" if isinstance(node, ast.Lambda) else "value"
    result = getattr(node, field)
    if result is not None and not isinstance(result, ast.Constant):
        yield Swap(node, field, None, _NONE)


def _delete(node: ast.stmt) -> Iterator[Swap]:
    yield Swap(node, "", None, ast.Pass())


def _assignment(node: ast.Assign) -> Iterator[Swap]:
    """Names have to be bound. What is deleted elsewhere is one that is bound again."""
    if not any(isinstance(target, ast.Name | ast.Tuple) for target in node.targets):
        yield from _delete(node)


def _augmented(node: ast.AugAssign) -> Iterator[Swap]:
    yield from _arithmetic(node)
    yield from _delete(node)


def _continue(node: ast.Continue) -> Iterator[Swap]:
    yield Swap(node, "", None, ast.Break())


OPERATORS: Final[dict[type[ast.AST], tuple[Operator, ...]]] = {
    ast.Assign: (_assignment,),
    ast.AsyncFor: (_loop,),
    ast.AugAssign: (_augmented,),
    ast.BinOp: (_binary,),
    ast.BoolOp: (_boolean,),
    ast.Break: (_delete,),
    ast.Call: (_call,),
    ast.Compare: (_compare,),
    ast.Constant: (_changed_constant,),
    ast.Continue: (_continue,),
    ast.Dict: (_elements,),
    ast.ExceptHandler: (_handler,),
    ast.Expr: (_delete,),
    ast.For: (_loop,),
    ast.If: (_condition,),
    ast.IfExp: (_condition, _choice),
    ast.Lambda: (_yield,),
    ast.MatchOr: (_alternatives,),
    ast.Raise: (_delete,),
    ast.Set: (_elements,),
    ast.Slice: (_slice,),
    ast.UnaryOp: (_unary,),
    ast.While: (_condition,),
    ast.Yield: (_yield,),
    ast.comprehension: (_comprehension,),
    ast.match_case: (_case,),
}
"""A swap whose field is "" is of the node itself."""


def results(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Operator:
    """What a function may return instead."""
    is_boolean = isinstance(function.returns, ast.Name) and function.returns.id == "bool"

    def swaps(node: ast.Return) -> Iterator[Swap]:
        if node.value is None or isinstance(node.value, ast.Constant):
            return
        if not is_boolean:
            yield Swap(node, "value", None, _NONE)
        elif not isinstance(node.value, ast.Compare | ast.UnaryOp):
            yield Swap(node, "value", None, ast.UnaryOp(ast.Not(), node.value))

    return swaps
