"""The process that starts a handler, while that one's processes die more quickly than it reaps."""

import json
import os
import signal
import socket
from collections.abc import Callable, Iterator

import pytest

from forewarned.scenarios.isolation.keeper import Keeper

DYING = 100_000


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """As they were: a keeper has a process of its own otherwise."""
    before = signal.getsignal(signal.SIGCHLD)
    yield
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, before)


class Deaths:
    """Children of this process that have died: always one more, and in the end no more."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.reaped = 0

    def waitpid(self, _pid: int, _options: int) -> tuple[int, int]:
        if not self.left:
            raise ChildProcessError
        self.left -= 1
        self.reaped += 1
        return 1, 0


class Tree:
    """Notes how many were reaped by the time that it was to send a signal."""

    def __init__(self, deaths: Deaths) -> None:
        self._deaths = deaths
        self.sent: list[tuple[int, int]] = []

    def send(self, number: int) -> None:
        self.sent.append((number, self._deaths.reaped))

    def kill(self, reap: Callable[[], object]) -> None:
        self.send(signal.SIGKILL)
        reap()


def served(tree: Tree, *messages: object) -> list[object]:
    """What a keeper says that has children, and is told this."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"".join(json.dumps(each).encode() + b"\n" for each in messages))
        ours.shutdown(socket.SHUT_WR)
        keeper = Keeper(theirs, tree)
        keeper._has_children = True
        keeper.serve()
        keeper.end_all()
        theirs.close()
        return [json.loads(line)["said"] for line in ours.makefile("rb")]


def test_a_keeper_obeys_however_many_have_died(monkeypatch: pytest.MonkeyPatch) -> None:
    deaths = Deaths(DYING)
    monkeypatch.setattr(os, "waitpid", deaths.waitpid)
    tree = Tree(deaths)

    said = served(tree, {"do": "signal", "number": signal.SIGTERM})

    assert tree.sent[0] == (signal.SIGTERM, 0)
    # And ends them when its channel closes, with most of them still to be reaped.
    assert tree.sent[1][0] == signal.SIGKILL
    assert tree.sent[1][1] < DYING / 100
    assert said[0] == "ready"
    assert deaths.left == 0


def test_a_kill_is_told_when_it_is_done_and_reaps_some_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deaths = Deaths(DYING)
    monkeypatch.setattr(os, "waitpid", deaths.waitpid)
    tree = Tree(deaths)

    said = served(tree, *[{"do": "signal", "number": signal.SIGKILL}] * 2)

    first, second = [reaped for _, reaped in tree.sent[:2]]
    assert first == 0
    assert 0 < second < DYING / 100
    assert said[:3] == ["ready", "killed", "killed"]
