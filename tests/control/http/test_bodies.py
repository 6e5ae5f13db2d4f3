"""Names that the product itself goes by in history, which no label may have."""

import ast
from collections.abc import Iterator
from typing import Final

from forewarned.control.http.bodies import OWN_ACTORS
from tests.source_tree import modules, parsed

UNLABELED: Final = "control"
"""Callers without a label, or with one that is refused."""
OF_SAMPLE: Final = "web_0"
"""The VM of a sample message."""
NAMES: Final = {"Actor": "name", "Approval": "by"}


def test_no_label_is_taken_for_an_actor_that_the_product_itself_writes() -> None:
    written = {name for module in modules("src") for name in _actors(parsed(module))}

    assert {"console", "drain", "policy", "publisher", "time", "upgrade"} <= written
    assert written - OWN_ACTORS == {UNLABELED, OF_SAMPLE}


def _actors(module: ast.Module) -> Iterator[str]:
    """What its actors and approvals are called in so many words, or by a name for these words."""
    for node in ast.walk(module):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
            continue
        keyword = NAMES.get(ast.unparse(node.func).rpartition(".")[2])
        for given in node.keywords:
            if keyword is not None and given.arg == keyword:
                yield from _words(given.value)
                if isinstance(given.value, ast.Name):
                    yield from _assigned(module, given.value.id)


def _assigned(module: ast.Module, name: str) -> Iterator[str]:
    for node in ast.walk(module):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                yield from _words(value)
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
                if target == name:
                    yield from _words(value)
            case _:
                pass


def _words(value: ast.expr) -> Iterator[str]:
    """Those that it may be: of `f"vm:{name}"` none, because no label may begin so."""
    match value:
        case ast.Constant(value=str() as word) if word:
            yield word
        case ast.IfExp(body=one, orelse=other):
            yield from (*_words(one), *_words(other))
        case ast.BoolOp(values=several):
            for each in several:
                yield from _words(each)
        case _:
            pass
