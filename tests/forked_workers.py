"""Tests in several processes at a time, each forked from the one that has collected them all.

Workers of pytest-xdist would each collect all tests, which takes one eight seconds of a processor.
A worker runs the tests of a module, or of several that share much, and then asks for more. What its
tests say goes to the process that has collected them, which reports it as if it had run them.
"""

import atexit
import itertools
import os
import random
import sys
import traceback
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Final, Never

import pytest

TOGETHER: Final = ("tests/lab/", "tests/openstack/", "tests/end_to_end/test_az", "tests/browser/")
"""What these start for all of their tests, as hypervisors, takes longer than most of the tests."""


def batch_of(nodeid: str) -> str:
    """Tests of one batch run in one worker."""
    shared = next((start for start in TOGETHER if nodeid.startswith(start)), None)
    return shared or nodeid.partition("::")[0]


@dataclass(slots=True)
class _Worker:
    pid: int
    link: Connection
    given: deque[int]
    """Numbers of the tests that it has not finished, the one it runs first."""
    from_the_end: bool
    """Whether it takes batches from the end of the list."""


class ForkedWorkers:
    """A plugin of pytest's."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._batches = deque[list[int]]()
        self._workers = dict[Connection, _Worker]()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly:
            return None
        numbers = range(len(session.items))
        batches = itertools.groupby(numbers, key=lambda n: batch_of(session.items[n].nodeid))
        self._batches.extend(list(batch) for _, batch in batches)
        try:
            while self._batches and len(self._workers) < self._count:
                # Tests that wait come first. One worker begins with those that only compute, so
                # that the processors have something to do meanwhile.
                from_the_end = 0 < len(self._workers) == self._count - 1
                self._start(
                    session, self._next(from_the_end=from_the_end), from_the_end=from_the_end
                )
            while self._workers:
                for link in wait(list(self._workers)):
                    assert isinstance(link, Connection)
                    self._hear(session, self._workers[link])
        finally:
            for worker in self._workers.values():
                worker.link.close()
                os.waitpid(worker.pid, 0)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        return True

    def _next(self, *, from_the_end: bool) -> list[int]:
        return self._batches.pop() if from_the_end else self._batches.popleft()

    def _start(self, session: pytest.Session, first: Sequence[int], *, from_the_end: bool) -> None:
        here, there = Pipe()
        if (pid := os.fork()) == 0:
            here.close()
            _work(session, there, first)
        there.close()
        self._workers[here] = _Worker(
            pid=pid, link=here, given=deque(first), from_the_end=from_the_end
        )

    def _hear(self, session: pytest.Session, worker: _Worker) -> None:
        try:
            told = worker.link.recv()
        except (EOFError, ConnectionError):
            self._bury(session, worker)
            return
        if told == "more":
            is_over = not self._batches or session.shouldfail
            more = [] if is_over else self._next(from_the_end=worker.from_the_end)
            worker.given.extend(more)
            worker.link.send(more)
        elif told == "finished":
            worker.given.popleft()
        else:
            report = session.config.hook.pytest_report_from_serializable(
                config=session.config, data=told
            )
            session.config.hook.pytest_runtest_logreport(report=report)

    def _bury(self, session: pytest.Session, worker: _Worker) -> None:
        """If it has left tests behind, the first of them ended it; another one runs the rest."""
        _, status = os.waitpid(worker.pid, 0)
        worker.link.close()
        del self._workers[worker.link]
        if worker.given:
            guilty = session.items[worker.given.popleft()]
            code = os.waitstatus_to_exitcode(status)
            report = pytest.TestReport(
                nodeid=guilty.nodeid,
                location=guilty.location,
                keywords={},
                outcome="failed",
                longrepr=f"the process that ran this test ended with status {code}",
                when="call",
            )
            session.config.hook.pytest_runtest_logreport(report=report)
        if worker.given:
            self._start(session, worker.given, from_the_end=worker.from_the_end)


def _work(session: pytest.Session, link: Connection, first: Sequence[int]) -> Never:
    """Run these tests, and then those that are given for the asking."""
    status = 1
    try:
        _part_from_others(session.config)
        session.config.pluginmanager.register(_Teller(session.config, link))
        pending = deque(first)
        while pending:
            item = session.items[pending.popleft()]
            if not pending:
                # Before the last one is run: what is torn down after it depends on what is next.
                link.send("more")
                pending.extend(link.recv())
            following = session.items[pending[0]] if pending else None
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            link.send("finished")
        status = 0
    except BaseException:  # noqa: BLE001  # nothing may get back into the loop of the parent
        traceback.print_exc()
    finally:
        _save_coverage()
        atexit._run_exitfuncs()
        os._exit(status)


def _save_coverage() -> None:
    """`make coverage` measures each process, and only the first one saves what it saw by itself."""
    if "coverage" in sys.modules and (measured := sys.modules["coverage"].Coverage.current()):
        measured.stop()
        measured.save()


class _Teller:
    """A plugin of a worker's. Warnings need not be told: they are errors."""

    def __init__(self, config: pytest.Config, link: Connection) -> None:
        self._config = config
        self._link = link

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told: dict[str, Any] = self._config.hook.pytest_report_to_serializable(
            config=self._config, report=report
        )
        self._link.send(told)


def _part_from_others(config: pytest.Config) -> None:
    plugins = config.pluginmanager
    plugins.unregister(name="terminalreporter")
    # Output is kept in a file, and this one is everybody's.
    capture = plugins.get_plugin("capturemanager")
    assert capture is not None
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    # Ports, for example, are chosen by chance.
    random.seed()
