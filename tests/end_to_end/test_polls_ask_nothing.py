"""What polls ask of the store and of the disk, as the processes of a real server tell: nothing."""

import contextlib
import os
import stat
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from tests.end_to_end.polls import ask_once, closing_poll, line, poll
from tests.end_to_end.server_process import DOCUMENT, WORKERS, Server
from tests.end_to_end.supervised_server import SupervisedServer, start_supervised, wait_until

FEW: Final = 20
VMS: Final = {f"vm-{number}": f"127.9.1.{number}" for number in range(1, 4)}
ONE, OTHER, ASIDE = VMS.values()

WAITING: Final = f"{DOCUMENT}&wait=30s&last-incarnation="
WAITING_IN_VAIN: Final = f"{DOCUMENT}&wait=1s"
_CHAINS = "history is chained up to"


@dataclass(frozen=True, slots=True)
class DiskAudit:
    """What every process of a server has told so far of what it asks of the disk."""

    report: Path

    def lines(self, pid: int) -> list[str]:
        """Of one process."""
        return [told for told in self._told() if told.startswith(f"{pid} ")]

    def statements(self) -> int:
        """Of the store, whichever process asked."""
        return sum(told.split()[1] == "statement" for told in self._told())

    def marks(self) -> int:
        """How often the store was told that a scope is still read."""
        return sum("UPDATE scopes SET last_read_at" in told for told in self._told())

    def wait_for_marks(self, number: int) -> None:
        wait_until(lambda: self.marks() >= number)

    def wait_for_chain(self) -> None:
        """Until the last change was looked at to be chained: within a second, polls or not."""
        wait_until(self._is_chained)

    def _is_chained(self) -> bool:
        changed = looked = committed = -1
        for number, told in enumerate(self._told()):
            if _CHAINS in told:
                looked = number
            elif "'COMMIT'" in told:
                committed = number
            elif "INSERT INTO" in told or "UPDATE" in told:
                changed = number
        return changed < looked < committed

    def _told(self) -> list[str]:
        return self.report.read_text().splitlines()


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskAudit:
    """From here on, all that is started tells."""
    report = tmp_path / "report"
    here = str(Path(__file__).with_name("disk_audit"))
    path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("DISK_AUDIT", str(report))
    return DiskAudit(report)


def meets_vms(supervised: SupervisedServer, workers: str) -> int:
    """The process that does."""
    return supervised.pid("poller") if workers == "1" else supervised.server.pid


def poll_often(server: Server, times: int) -> set[int]:
    """As VMs do: over a connection that stays and over new ones, for news and for a 304."""
    tag = ask_once(server, ONE, closing_poll()).headers["etag"]
    statuses: set[int] = set()
    with line(server, ONE) as kept:
        for _ in range(times):
            statuses.add(kept.ask(poll()).status)
            statuses.add(kept.ask(poll(If_None_Match=tag)).status)
            statuses.add(ask_once(server, OTHER, closing_poll()).status)
            statuses.add(ask_once(server, OTHER, closing_poll(If_None_Match=tag)).status)
    return statuses


def wait_in_vain(server: Server) -> int:
    with line(server, ASIDE) as waiting:
        return waiting.ask(poll(WAITING_IN_VAIN)).status


def held_files(pid: int, audit: DiskAudit) -> dict[Path, tuple[int, int]]:
    """The files of a disk that a process has open, each with its size and when it was written."""
    found: dict[Path, tuple[int, int]] = {}
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        # A socket may go between the two.
        with contextlib.suppress(FileNotFoundError):
            file, path = descriptor.stat(), descriptor.readlink()
            # All processes tell in one report, and what others tell is no matter.
            if stat.S_ISREG(file.st_mode) and path != audit.report:
                found[path] = (file.st_size, file.st_mtime_ns)
    return found


def wait_for_disk(pid: int, audit: DiskAudit) -> None:
    """Until a commit that was begun has been written: statements are told before they are run."""
    seen: list[dict[Path, tuple[int, int]]] = [{}]

    def is_at_rest() -> bool:
        seen.append(held_files(pid, audit))
        return seen[-1] == seen[-2]

    wait_until(is_at_rest, pause=timedelta(milliseconds=100))


@pytest.mark.parametrize("workers", WORKERS)
def test_ten_times_the_polls_cost_not_one_statement_more(
    tmp_path: Path, audit: DiskAudit, workers: str
) -> None:
    """I26."""
    during: list[int] = []
    an_hour_later: list[int] = []
    with start_supervised(tmp_path, VMS, "--workers", workers, "--arm", "off") as supervised:
        server = supervised.server
        # The first read of a scope switches it on.
        poll_often(server, 1)
        for times in (FEW, 10 * FEW):
            audit.wait_for_chain()
            before = audit.statements()
            statuses = poll_often(server, times)
            during.append(audit.statements() - before)
            # That a scope is still read is recorded at most every half hour of the server's clock.
            server.call("POST", "/v1/clock/step", {"by": "1h"})
            before = audit.marks()
            statuses |= poll_often(server, times)
            # A read of the control API is answered when all pollers have told what they know.
            audit.wait_for_marks(before + 2)
            server.call("GET", "/v1/clock")
            an_hour_later.append(audit.marks() - before)

            assert statuses == {200, 304}

    assert during == [0, 0]
    assert an_hour_later == [2, 2], "one for each scope"


@pytest.mark.parametrize("workers", WORKERS)
def test_nothing_on_the_poll_path_touches_the_disk(
    tmp_path: Path, audit: DiskAudit, workers: str
) -> None:
    """I26: no file is opened, none that is open is written to, and nothing is logged."""
    with start_supervised(tmp_path, VMS, "--workers", workers, "--arm", "off") as supervised:
        server, pid = supervised.server, meets_vms(supervised, workers)
        # Once before it counts: the first read of a scope switches it on.
        poll_often(server, 1)
        ask_once(server, ASIDE, closing_poll())
        audit.wait_for_chain()
        wait_for_disk(pid, audit)
        log, told, files = supervised.log(), audit.lines(pid), held_files(pid, audit)

        statuses = poll_often(server, 5 * FEW)
        waited = wait_in_vain(server)

        assert audit.lines(pid)[len(told) :] == []
        assert held_files(pid, audit) == files
        assert supervised.log() == log
    assert statuses == {200, 304}
    assert waited == 200
    # It would have been told of: the process has opened files when it began.
    assert any(line.split()[1] == "open" for line in told)


def test_a_poller_that_has_news_for_vms_touches_no_disk(tmp_path: Path, audit: DiskAudit) -> None:
    """I26: nor do polls that wait, and those that follow a change. The writer's log is its own."""
    with start_supervised(tmp_path, VMS, "--workers", "1", "--arm", "off") as supervised:
        server, pid = supervised.server, supervised.pid("poller")
        first = news(server)
        told, files = audit.lines(pid), held_files(pid, audit)

        heard = [news(server) for _ in range(10)]

        assert audit.lines(pid)[len(told) :] == []
        assert held_files(pid, audit).keys() == files.keys()
    assert heard == [first + number for number in range(1, 11)]


def news(server: Server) -> int:
    """The incarnation that a waiting poll is answered with, and that polls find from then on."""
    with line(server, ONE) as waiting, line(server, ONE) as polling:
        known = polling.ask(poll()).json["DocumentIncarnation"]
        waiting.send(poll(f"{WAITING}{known}"))
        server.call("POST", "/v1/events", {"type": "Freeze", "resources": ["vm-1"]})
        incarnation: int = waiting.receive().json["DocumentIncarnation"]
        assert polling.ask(poll()).json["DocumentIncarnation"] == incarnation
        assert ask_once(server, ONE, closing_poll()).json["DocumentIncarnation"] == incarnation
    return incarnation
