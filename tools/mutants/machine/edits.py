"""The edits of one module: where each is, and the text that it puts there.

Left alone: annotations, decorators, imports, docstrings, type aliases, assertions, and what is
written to the log. None of these decides anything.
"""

import ast
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from tools.mutants.machine.operators import OPERATORS, Swap, results

_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_LEFT_ALONE: Final = (ast.Import, ast.ImportFrom, ast.Assert, ast.Global, ast.Nonlocal)
_UNMUTATED_FIELDS: Final = {"annotation", "returns", "decorator_list", "bases"}
_UNMUTATED_CALLS: Final = {"assert_never", "cast", "field", "getLogger", "NewType", "TypeVar"}
_LOGGER: Final = "_log"


class Function(NamedTuple):
    """A function as Python's code objects name it."""

    qualname: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    module: str
    """Its path below `src/forewarned`."""
    where: str
    """The function or class, by its qualified name; empty for the module itself."""
    line: int
    old: str
    """The lines that it changes, as one line."""
    new: str
    source: str
    """The whole module with the edit."""
    lines: frozenset[int]
    """A test that runs none of these can't notice it."""
    function: Function | None
    """The outermost function whose body it is in; None if importing the module runs it."""


class _Spot(NamedTuple):
    node: ast.AST
    where: tuple[str, ...]
    function: Function | None
    inner: ast.FunctionDef | ast.AsyncFunctionDef | None
    """The innermost function around the node."""


def edits_of(path: Path, module: str) -> list[Edit]:
    """Every edit of a module, in the order of its lines."""
    return list(dict.fromkeys(_Editor(path.read_bytes(), module).edits()))


class _Editor:
    def __init__(self, source: bytes, module: str) -> None:
        self._source = source
        self._module = module
        self._tree = ast.parse(source)
        self._parents: dict[ast.AST, tuple[ast.AST, str, int | None]] = {}
        for owner in ast.walk(self._tree):
            for field, index, child in _children(owner):
                self._parents[child] = (owner, field, index)
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts

    def edits(self) -> Iterator[Edit]:
        for spot in list(self._spots(self._tree, (), None, None)):
            for swap in self._swaps(spot):
                yield self._edit(spot, swap)

    # --- what is edited --------------------------------------------------------------------------

    def _spots(
        self,
        node: ast.AST,
        where: tuple[str, ...],
        function: Function | None,
        inner: ast.FunctionDef | ast.AsyncFunctionDef | None,
    ) -> Iterator[_Spot]:
        if self._is_left_alone(node, is_top=not where):
            return
        yield _Spot(node, where, function, inner)
        named = isinstance(node, (*_FUNCTIONS, ast.ClassDef))
        inside = (*where, node.name) if named else where  # type: ignore[attr-defined]  # as said
        for field, _, child in _children(node):
            if field in _UNMUTATED_FIELDS or (_is_for_types(node) and field != "orelse"):
                continue
            if isinstance(node, _FUNCTIONS) and field == "body":
                known = function or Function(_qualname(where, node.name), _first_line(node))
                yield from self._spots(child, inside, known, node)
            else:
                yield from self._spots(child, inside, function, inner)

    def _is_left_alone(self, node: ast.AST, *, is_top: bool) -> bool:
        match node:
            case ast.Expr(value=ast.Constant()):
                return True
            case ast.Call(func=ast.Name(id=name)) if name in _UNMUTATED_CALLS:
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=called)):
                return name == _LOGGER or called in _UNMUTATED_CALLS
            case ast.Expr(value=value) if self._is_left_alone(value, is_top=False):
                return True
            case ast.match_case(body=[ast.Expr(value=value)]):
                return self._is_left_alone(value, is_top=False)
            case ast.Assign(value=value) | ast.AnnAssign(value=value) if is_top:
                return _is_type(value) or _is_public_list(node)
            case _:
                return isinstance(node, _LEFT_ALONE)

    def _swaps(self, spot: _Spot) -> Iterator[Swap]:
        node = spot.node
        for operator in () if _is_for_types(node) else OPERATORS.get(type(node), ()):
            yield from operator(node)
        if isinstance(node, ast.Return) and spot.inner is not None:
            yield from results(spot.inner)(node)
        if isinstance(node, ast.Assign) and spot.inner is not None and _rebinds(node, spot.inner):
            yield Swap(node, "", None, ast.Pass())

    # --- as text ---------------------------------------------------------------------------------

    def _edit(self, spot: _Spot, swap: Swap) -> Edit:
        if not swap.field:
            owner, field, index = self._parents[swap.owner]
            swap = Swap(owner, field, index, swap.value)
        begin, end, text = self._replacement(swap)
        edited = self._source[:begin] + text.encode() + self._source[end:]
        first, last = self._line_at(begin), self._line_at(end)
        grown = text.count("\n") - (last - first)
        statement = self._statement(spot.node)
        return Edit(
            module=self._module,
            where=".".join(spot.where),
            line=first,
            old=_lines(self._source, first, last),
            new=_lines(edited, first, last + grown),
            source=edited.decode(),
            lines=frozenset({*range(first, last + 1), statement}),
            function=spot.function,
        )

    def _replacement(self, swap: Swap) -> tuple[int, int, str]:
        """The smallest piece of text that makes exactly this swap."""
        former = _get(swap)
        if isinstance(swap.owner, ast.match_case) and former is None:
            begin, end = self._offsets(swap.owner.pattern)
            return begin, end, f"{self._source[begin:end].decode()} if False"
        anchor = former if _has_place(former) and isinstance(swap.value, ast.AST) else swap.owner
        while True:
            anchor = self._outside_text(anchor)
            with _swapped(swap):
                now = swap.value if anchor is former else anchor
                begin, end = self._offsets(anchor)
                text = self._text(now, begin)
                if self._is_exact(begin, end, text, swap):
                    return begin, end, text
            anchor = self._parents[anchor][0]
            while not _has_place(anchor):
                anchor = self._parents[anchor][0]

    def _outside_text(self, node: ast.AST) -> ast.AST:
        """Inside f-strings, Python 3.11 does not say where things are."""
        outermost = node
        while node in self._parents:
            node = self._parents[node][0]
            if isinstance(node, ast.JoinedStr):
                outermost = node
        while not _has_place(outermost):
            outermost = self._parents[outermost][0]
        return outermost

    def _text(self, node: ast.AST, begin: int) -> str:
        text = ast.unparse(node)
        if isinstance(node, ast.stmt):
            margin = begin - self._starts[self._line_at(begin) - 1]
            return textwrap.indent(text, " " * margin).lstrip()
        is_whole = isinstance(node, ast.Constant | ast.Name | ast.Attribute | ast.Call | ast.Slice)
        if is_whole or isinstance(node, ast.pattern | ast.keyword | ast.JoinedStr | ast.Subscript):
            return text
        return text if text.startswith(("(", "[", "{")) else f"({text})"

    def _is_exact(self, begin: int, end: int, text: str, swap: Swap) -> bool:
        top: ast.AST = swap.owner
        while not (
            isinstance(top, ast.stmt)
            and isinstance(self._parents[top][0], ast.Module | ast.ClassDef)
        ):
            top = self._parents[top][0]
        start, stop = self._offsets(top)
        piece = self._source[start:begin] + text.encode() + self._source[end:stop]
        try:
            made = ast.parse(piece)
        except SyntaxError:
            return False
        if isinstance(top, (*_FUNCTIONS, ast.ClassDef)):
            made.body[0].decorator_list = top.decorator_list  # type: ignore[attr-defined]  # as top
        return len(made.body) == 1 and ast.dump(made.body[0]) == ast.dump(top)

    def _offsets(self, node: Any) -> tuple[int, int]:  # any node that has a place
        begin = self._starts[node.lineno - 1] + node.col_offset
        return begin, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _line_at(self, offset: int) -> int:
        return self._source.count(b"\n", 0, offset) + 1

    def _statement(self, node: ast.AST) -> int:
        while not isinstance(node, ast.stmt):
            node = self._parents[node][0]
        return node.lineno


def _children(owner: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    for field, value in ast.iter_fields(owner):
        if isinstance(value, ast.AST):
            yield field, None, value
        elif isinstance(value, list):
            for index, child in enumerate(value):
                if isinstance(child, ast.AST):
                    yield field, index, child


def _get(swap: Swap) -> Any:  # what a field of a node may have
    value = getattr(swap.owner, swap.field)
    return value if swap.index is None else value[swap.index]


@contextmanager
def _swapped(swap: Swap) -> Iterator[None]:
    former = getattr(swap.owner, swap.field)
    value = swap.value
    if swap.index is not None:
        value = [*former[: swap.index], value, *former[swap.index + 1 :]]
    setattr(swap.owner, swap.field, value)
    try:
        yield
    finally:
        setattr(swap.owner, swap.field, former)


def _has_place(node: object) -> bool:
    return hasattr(node, "end_col_offset")


def _first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([function.lineno, *(each.lineno for each in function.decorator_list)])


def _qualname(where: tuple[str, ...], name: str) -> str:
    """Only of outermost functions, which are in classes at most."""
    return ".".join((*where, name))


def _rebinds(node: ast.Assign, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the name had a value before, which it then keeps."""
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return False
    name = node.targets[0].id
    arguments = function.args
    given = {each.arg for each in (*arguments.args, *arguments.kwonlyargs, *arguments.posonlyargs)}
    earlier = {
        each.id
        for each in ast.walk(function)
        if isinstance(each, ast.Name)
        and isinstance(each.ctx, ast.Store)
        and each.lineno < node.lineno
    }
    return name in given | earlier


def _is_for_types(node: ast.AST) -> bool:
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case _:
            return False


def _is_type(value: ast.expr | None) -> bool:
    match value:
        case ast.BinOp(op=ast.BitOr(), right=ast.Name()):
            return True
        case ast.Subscript(value=ast.Name(id=name)):
            return name[0].isupper() or name in {"tuple", "list", "dict", "type"}
        case _:
            return False


def _is_public_list(node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case _:
            return False


def _lines(source: bytes, first: int, last: int) -> str:
    return " ".join(b"\n".join(source.split(b"\n")[first - 1 : last]).decode().split())
