"""What pages name of the tree is there: the hops of requests, tests, where to look for what."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src" / "forewarned"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
FOLLOWED = PAGE.partition("## Follow a request")[2].partition("\n## ")[0]
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
NODES = (ROOT / "docs" / "several-nodes.md").read_text(encoding="utf-8")
TESTS = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", NODES)
# Every one of these paths can be told from the page alone.
PROMISED = {
    "A VM polls",
    "A VM approves an event",
    "`az vmss delete-instances`",
    "NotBefore falls due",
    "The agent prepares, approves and recovers",
    "A program watches with the SDK",
    "A test uses the fixture",
}
HOPS = sorted(set(re.findall(r"`([a-z_]+(?:\.\w+)+)`", FOLLOWED)))


def is_there(hop: str) -> bool:
    """Whether a module has it, by its source: nothing is imported. A module alone is no hop."""
    parts = hop.split(".")
    for at in range(len(parts) - 1, 0, -1):
        path = SRC.joinpath(*parts[:at])
        for module in (path.with_suffix(".py"), path / "__init__.py"):
            if module.exists():
                return has(ast.parse(module.read_text(encoding="utf-8")), parts[at:])
    return False


def has(tree: ast.AST, names: list[str]) -> bool:
    if not names:
        return True
    first, *rest = names
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, DEFINITIONS) and node.name == first:
            return has(node, rest)
        if isinstance(node, ast.ImportFrom) and any(each.name == first for each in node.names):
            return not rest
    return False


def test_the_seven_promised_paths_are_followed_hop_by_hop() -> None:
    sections = dict(each.split("\n", 1) for each in FOLLOWED.split("\n### ")[1:])

    assert sections.keys() >= PROMISED
    assert [
        name for name in PROMISED if not re.search(r"^1\. `", sections[name], re.MULTILINE)
    ] == []
    assert len(HOPS) > 40


def test_every_hop_is_there() -> None:
    assert [hop for hop in HOPS if not is_there(hop)] == []


def test_a_hop_that_is_gone_would_be_noticed() -> None:
    assert not is_there("service.engine.Engine.undecide")
    assert not is_there("service.motor")
    assert not is_there("service.engine")


def test_every_test_that_shows_a_failure_is_there() -> None:
    """The table of docs/several-nodes.md claims nothing that no test shows."""
    missing = [
        f"{path}::{name}"
        for path, name in TESTS
        if not (ROOT / path).exists()
        or not has(ast.parse((ROOT / path).read_text(encoding="utf-8")), [name] if name else [])
    ]

    assert len(TESTS) > 10
    assert missing == []


def test_every_place_that_contributors_are_sent_to_is_there() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page.partition("| You want to change")[2].partition("\n\n")[0]
    named = re.findall(r"`([a-z]\w*/[\w/.]*)`", table)

    assert len(named) > 30
    assert [path for path in named if not (SRC / path).exists()] == []


def test_every_example_of_several_nodes_is_there() -> None:
    named = re.findall(r"`(examples/several-nodes/[\w.-]+)`", NODES)

    assert len(named) > 3
    assert [path for path in named if not (ROOT / path).exists()] == []
