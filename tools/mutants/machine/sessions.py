"""Runs of pytest that try edits: what the tests run, and what they say of an edit.

There are two ways to try one. The fast way: tests are collected once, and in a process split off
from there the code of one function is exchanged. Where importing a module runs what is edited, the
module has to be imported anew: a process is split off before that.
"""

import gc
import importlib
import importlib.machinery
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Final

import coverage
import pytest
from typing_extensions import override

from tools.mutants import profile
from tools.mutants.machine.edits import Edit, Function
from tools.mutants.machine.targets import Target

_PATIENCE: Final = 0.5
_FAR_LONGER: Final = 4
_OUR_OWN: Final = ("tests", "tools", "benchmarks", "conftest")
# Assertions stay as they are: what pytest makes of them is for people, and it would import the
# modules of a project with a plugin by itself, without the edit.
_QUIET: Final = ("-q", "-p", "no:cacheprovider", "--assert=plain")


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a run of the tests without any edit has shown."""

    failed: tuple[str, ...]
    tests_of: Mapping[str, Mapping[int, Collection[str]]]
    """Which tests run each line of each module."""
    imported: Mapping[str, Collection[int]]
    """Lines of each module that importing it, or collecting tests, runs."""
    seconds: Mapping[str, float]
    """What each test takes of the processor."""
    libraries: tuple[str, ...]
    """Modules of others that the tests import."""

    def tests_for(self, edit: Edit) -> dict[str, float]:
        """Tests that could notice the edit, quick ones first, and what each takes."""
        lines = self.tests_of[edit.module]
        tests: Collection[str] = {test for line in edit.lines for test in lines.get(line, ())}
        if self.is_imported(edit):
            tests = self.seconds
        ordered = sorted(tests, key=lambda test: (self.seconds[test], test))
        return {test: self.seconds[test] for test in ordered}

    def nearest_tests_for(self, edit: Edit) -> dict[str, float]:
        """Those of them that are in the module's own file of tests."""
        own = f"test_{Path(edit.module).stem.lstrip('_')}.py"
        tests = self.tests_for(edit)
        return {test: tests[test] for test in tests if Path(test.partition("::")[0]).name == own}

    def is_imported(self, edit: Edit) -> bool:
        return edit.function is None or not edit.lines.isdisjoint(self.imported[edit.module])


@dataclass(slots=True, eq=False)
class _Surveyor:
    """As a plugin of pytest."""

    measured: coverage.Coverage
    failed: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.measured.switch_context(item.nodeid)
        began = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.process_time() - began
            self.measured.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(f"{report.nodeid}\n{report.longreprtext}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(f"{report.nodeid}\n{report.longreprtext}")


def survey(target: Target, writer: Connection) -> None:
    """Run the tests as they are, and send what was seen."""
    files = {module: str(target.source / module) for module in target.modules}
    measured = coverage.Coverage(
        data_file=None, config_file=False, include=list(files.values()), messages=False
    )
    surveyor = _Surveyor(measured)
    measured.start()
    code = _pytest(target, target.tests, surveyor)
    measured.stop()
    if code not in (0, 1):
        surveyor.failed.append(f"pytest ended with {code}")
    contexts = {
        module: measured.get_data().contexts_by_lineno(file) for module, file in files.items()
    }
    writer.send(
        Survey(
            failed=tuple(surveyor.failed),
            tests_of={
                module: {line: set(tests) - {""} for line, tests in lines.items()}
                for module, lines in contexts.items()
            },
            imported={
                module: {line for line, tests in lines.items() if "" in tests}
                for module, lines in contexts.items()
            },
            seconds=surveyor.seconds,
            libraries=tuple(
                name
                for name in sys.modules
                if name.partition(".")[0] not in (*_OUR_OWN, target.package)
            ),
        )
    )


def import_libraries(names: Sequence[str]) -> None:
    """Once, here, instead of in each process that is split off."""
    for name in names:
        # Some are made by others as they are imported, and can't be asked for by name.
        with suppress(Exception):
            importlib.import_module(name)


# --- one edit ------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Judge:
    """As a plugin of pytest: runs these tests, and ends at the first that fails."""

    tests: Mapping[str, float]
    failed: str | None = None

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """A test that takes far longer than it did ends this process."""
        signal.setitimer(signal.ITIMER_PROF, _PATIENCE + _FAR_LONGER * self.tests[item.nodeid])

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        wanted = {test: number for number, test in enumerate(self.tests)}
        items[:] = sorted(
            (item for item in items if item.nodeid in wanted), key=lambda item: wanted[item.nodeid]
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """Say no more of a failure than that it is one: pytest would take most of the time."""
        skipped = call.excinfo is not None and call.excinfo.errisinstance(pytest.skip.Exception)
        if call.excinfo is None or skipped or item.get_closest_marker("xfail"):
            return None
        assert call.when != "collect"
        return pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={},
            outcome="failed",
            longrepr=None,
            when=call.when,
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid


class _Edited(MetaPathFinder):
    """Finds one module as an edit leaves it."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self._name = name
        self._loader = _EditedLoader(name, str(path))
        self._loader.source = source

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(
            fullname, self._loader.path, loader=self._loader
        )


class _EditedLoader(SourceFileLoader):
    source: str

    @override
    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec")


def try_anew(target: Target, edit: Edit, tests: Mapping[str, float]) -> str | None:
    """The test that notices the edit, in a process that has not imported the module yet."""
    name = target.import_name(edit.module)
    assert name not in sys.modules
    sys.meta_path.insert(0, _Edited(name, target.source / edit.module, edit.source))
    judge = _Judge(tests)
    files = sorted({test.partition("::")[0] for test in tests})
    code = _pytest(target, files, judge, "-x")
    if judge.failed is None and code != 0:
        return f"pytest, which ends with {code}"
    return judge.failed


class Collected:
    """Tests that pytest has collected, to be run in processes split off from this one."""

    def __init__(self, session: pytest.Session, target: Target) -> None:
        self._session = session
        self._items = {item.nodeid: item for item in session.items}
        self._functions: dict[tuple[str, Function], list[FunctionType]] = {}
        files = {str(target.source / module): module for module in target.modules}
        # What the tests have frozen would be missing.
        gc.unfreeze()
        for value in gc.get_objects():
            if isinstance(value, FunctionType) and value.__code__.co_filename in files:
                code = value.__code__
                key = files[code.co_filename], Function(code.co_qualname, code.co_firstlineno)
                self._functions.setdefault(key, []).append(value)
        # Or each process that is split off copies all of it to look for garbage.
        gc.freeze()

    def can_exchange(self, edit: Edit) -> bool:
        if edit.function is None:
            return False
        return bool(self._functions.get((edit.module, edit.function)))

    def try_here(self, edit: Edit, tests: Mapping[str, float]) -> str | None:
        """The test that notices the edit. This process is good for nothing else afterwards."""
        assert edit.function is not None
        functions = self._functions[edit.module, edit.function]
        code = _code_of(edit, functions[0].__code__.co_filename)
        for function in functions:
            function.__code__ = code
        judge = _Judge(tests)
        config = self._session.config
        config.pluginmanager.register(judge)
        items = [self._items[test] for test in tests]
        for item, following in zip(items, [*items[1:], None], strict=True):
            config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if judge.failed is not None:
                return judge.failed
        return None


def collect(target: Target, then: Callable[[Collected], None]) -> None:
    """Collect the tests, and go on from there."""

    class Loop:
        """As a plugin of pytest."""

        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            then(Collected(session, target))
            return True

    _pytest(target, target.tests, Loop())


def _code_of(edit: Edit, file: str) -> CodeType:
    assert edit.function is not None
    left = [compile(edit.source, file, "exec")]
    while left:
        code = left.pop()
        if (code.co_qualname, code.co_firstlineno) == edit.function:
            return code
        left += [each for each in code.co_consts if isinstance(each, CodeType)]
    raise LookupError(f"no function {edit.function} in {edit.module}")


def _pytest(target: Target, tests: Sequence[str], plugin: object, *arguments: str) -> int:
    os.chdir(target.root)
    chosen = ("-p", profile.__name__, f"--hypothesis-profile={profile.MACHINE}")
    return int(pytest.main([*_QUIET, *chosen, *arguments, *tests], plugins=[plugin]))
