"""The machine that makes mutants, tried on a project of one module and a few tests."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tools.mutants.machine import explanations
from tools.mutants.machine.edits import Edit, edits_of
from tools.mutants.machine.explanations import BadExplanationError, key_of
from tools.mutants.machine.targets import ROOT, TARGETS

MODULE = """
from typing import Final

LIMIT: Final = 3


def is_many(count: int) -> bool:
    # A comment that no edit may lose.
    return count > LIMIT


def clamped(count: int) -> int:
    if count >= LIMIT:
        return LIMIT
    return count


def first_above(counts: list[int]) -> int | None:
    index = 0
    while index < len(counts):
        if is_many(counts[index]):
            return counts[index]
        index += 1
    return None


def names_of_many(counts: dict[str, int]) -> list[str]:
    return sorted(name for name, count in counts.items() if is_many(count))
"""
TESTS = """
from planted.counts import clamped, first_above, is_many, names_of_many


def test_above_the_limit_is_many():
    assert is_many(4)
    assert not is_many(3)


def test_nothing_is_above_the_limit_once_clamped():
    assert [clamped(count) for count in (2, 3, 4)] == [2, 3, 3]


def test_the_first_that_is_many_is_found():
    assert first_above([9, 8]) == first_above([1, 9]) == 9
    assert first_above([1, 2]) is None
    assert first_above([]) is None


def test_names_of_many_are_in_order():
    assert names_of_many({"b": 9, "c": 1, "a": 5}) == ["a", "b"]
"""
EQUIVALENT = """
[[survivor]]
module = "counts.py"
where = "clamped"
old = "if count >= LIMIT:"
new = "if (count > LIMIT):"
why = "at the limit both branches return the limit"
"""
GONE = """
[[survivor]]
module = "counts.py"
where = "clamped"
old = "if count >= MOST:"
new = "if (count > MOST):"
why = "it was renamed"
"""
CAUGHT = """
[[survivor]]
module = "counts.py"
where = "is_many"
old = "return count > LIMIT"
new = "return (count >= LIMIT)"
why = "nobody counts so far"
"""
RUN = """
import sys
from pathlib import Path
from tools.mutants.machine.__main__ import main
from tools.mutants.machine.targets import Target

root = Path(sys.argv[1])
target = Target(modules=("counts.py",), tests=("tests",), root=root, package="planted")
sys.exit(main(sys.argv[2:], targets=[target], explained_in=root / "explained.toml"))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    source = tmp_path / "src" / "planted"
    source.mkdir(parents=True)
    (source / "__init__.py").touch()
    (source / "counts.py").write_text(MODULE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_counts.py").write_text(TESTS)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest]\npythonpath = ["src"]\n')
    (tmp_path / "explained.toml").write_text(EQUIVALENT)
    return tmp_path


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # In a process of its own: it splits others off, which must not be done beside threads.
    command = [sys.executable, "-c", RUN, str(project), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def edits(project: Path) -> list[Edit]:
    return edits_of(project / "src" / "planted" / "counts.py", "counts.py")


def test_every_edit_is_caught_or_explained_and_hanging_counts_as_caught(project: Path) -> None:
    ran = run(project, "--json")

    result = json.loads(ran.stdout)
    [row] = result["modules"]
    assert row["explained"] == 1, ran.stderr
    assert row["survived"] == 0
    assert row["edits"] == row["caught"] + 1 == len(edits(project))
    [survivor] = result["survivors"]
    assert survivor["why"] == "at the limit both branches return the limit"
    assert ran.returncode == 0, ran.stderr


def test_a_survivor_that_is_not_explained_is_shown_and_fails_the_run(project: Path) -> None:
    tests = project / "tests" / "test_counts.py"
    tests.write_text(TESTS.replace("    assert not is_many(3)\n", ""))

    ran = run(project, "--function", "is_many")

    assert "- return count > LIMIT\n  + return (count >= LIMIT)\n" in ran.stderr
    assert ran.returncode == 1


def test_an_edit_of_what_importing_runs_is_tried_with_the_module_imported_anew(
    project: Path,
) -> None:
    tests = project / "tests" / "test_counts.py"
    tests.write_text(TESTS.partition("def test")[0] + "def test_nine():\n    assert is_many(9)\n")

    ran = run(project)

    # With all tests it is caught, as the first test here shows.
    assert "counts.py:4 : survived\n  - LIMIT: Final = 3\n  + LIMIT: Final = 4\n" in ran.stderr


def test_an_edit_inside_a_function_is_tried_without_importing_anything_again(
    project: Path,
) -> None:
    """Also where tests freeze what they have imported, as ours do, so that processes share it."""
    imports = project / "imports"
    module = project / "src" / "planted" / "counts.py"
    module.write_text(f"with open({str(imports)!r}, 'a') as told:\n    told.write('.')\n{MODULE}")
    (project / "tests" / "conftest.py").write_text(
        "import gc\n\n\ndef pytest_collection_finish():\n    gc.freeze()\n"
    )

    run(project, "--function", "first_above")

    assert len(imports.read_text()) < len([e for e in edits(project) if e.where == "first_above"])


def test_an_edit_that_waits_for_ever_is_caught(project: Path) -> None:
    (project / "src" / "planted" / "counts.py").write_text(
        "import threading\n\n\ndef is_set() -> bool:\n    event = threading.Event()\n"
        "    event.set()\n    return event.wait()\n"
    )
    (project / "tests" / "test_counts.py").write_text(
        "from planted.counts import is_set\n\n\ndef test_it():\n    assert is_set()\n"
    )
    (project / "explained.toml").write_text("")

    ran = run(project)

    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("stale", "function", "complaint"),
    [
        (GONE, "clamped", "but there is no such edit"),
        (CAUGHT, "is_many", "but caught by tests/test_counts.py::"),
    ],
)
def test_an_explanation_that_no_longer_holds_fails_the_run(
    project: Path, stale: str, function: str, complaint: str
) -> None:
    (project / "explained.toml").write_text(EQUIVALENT + stale)

    ran = run(project, "--function", function)

    assert complaint in ran.stderr
    assert ran.returncode == 1


def test_tests_that_fail_without_an_edit_judge_none(project: Path) -> None:
    tests = project / "tests" / "test_counts.py"
    tests.write_text(TESTS + "\n\ndef test_of_something_else():\n    assert False\n")

    ran = run(project)

    assert "the tests fail without any edit" in ran.stderr
    assert ran.returncode == 2


def test_a_module_below_the_least_score_fails_though_all_is_explained(project: Path) -> None:
    (project / "src" / "planted" / "counts.py").write_text(
        "def largest(counts: list[int]) -> int:\n    return max(counts[:])\n"
    )
    (project / "tests" / "test_counts.py").write_text(
        "from planted.counts import largest\n\n\ndef test_one():\n    assert largest([1]) == 1\n"
    )
    explained = """
        [[survivor]]
        module = "counts.py"
        where = "largest"
        old = "return max(counts[:])"
        new = "return min(counts[:])"
        why = "nobody has two"
        """
    (project / "explained.toml").write_text(dedent(explained))

    ran = run(project)

    assert "counts.py has 66.6 %, and needs 95 %" in ran.stderr
    assert ran.returncode == 1


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (EQUIVALENT + EQUIVALENT, "survivor 2: it is there twice"),
        (EQUIVALENT.replace("at the limit both branches return the limit", " "), "say why"),
        (EQUIVALENT.replace("where", "function"), "it needs module, new, old, where, why"),
        ("[[equivalent]]\n", r"only tables named \[\[survivor\]\]"),
        ("survivor = ['one']\n", r"only tables named \[\[survivor\]\]"),
        ("[[survivor]\n", "explained.toml: .* line 1"),
    ],
)
def test_a_wrong_file_of_explanations_is_refused(
    tmp_path: Path, wrong: str, complaint: str
) -> None:
    file = tmp_path / "explained.toml"
    file.write_text(wrong)

    with pytest.raises(BadExplanationError, match=complaint):
        explanations.read(file)


def test_a_run_that_would_try_nothing_is_refused(project: Path) -> None:
    ran = run(project, "--parallel", "0")

    assert "'0' is not a number from 1 on" in ran.stderr
    assert ran.returncode == 2


def test_an_edit_changes_what_it_says_and_leaves_all_other_lines_alone(project: Path) -> None:
    before = MODULE.splitlines()

    for edit in edits(project):
        after = edit.source.splitlines()
        assert edit.old != edit.new
        assert len(after) == len(before)
        changed = [new for old, new in zip(before, after, strict=True) if old != new]
        assert [" ".join(line.split()) for line in changed] == [edit.new]


MODULES = [(target, module) for target in TARGETS for module in target.modules]


@pytest.mark.parametrize(("target", "module"), MODULES, ids=[module for _, module in MODULES])
def test_every_edit_of_the_product_can_be_compiled_and_every_explanation_is_of_one(
    target: object, module: str
) -> None:
    found = edits_of(ROOT / "src" / "forewarned" / module, module)

    assert all(ast.parse(edit.source) for edit in found)
    explained = {key for key in explanations.read() if key.module == module}
    assert explained <= {key_of(edit) for edit in found}


def test_every_module_that_is_edited_and_every_test_that_judges_is_there() -> None:
    for target in TARGETS:
        assert all((target.source / module).is_file() for module in target.modules)
        assert all((target.root / tests).exists() for tests in target.tests)
    core = {f"core/{module.name}" for module in (ROOT / "src" / "forewarned" / "core").glob("*.py")}
    assert core - {"core/__init__.py"} <= {module for _, module in MODULES}
