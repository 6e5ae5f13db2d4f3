"""Applying a fleet, with a bar on a terminal."""

from collections.abc import Iterator
from io import StringIO

import httpx2
import pytest
from rich.console import Console
from typing_extensions import override

from forewarned.cli.connection import Control
from forewarned.cli.failures import CommandError, RefusedError, ServerFailedError
from forewarned.cli.fleet import apply as fleet_apply
from forewarned.control.v1.wire import FleetApplied
from forewarned.service.fleet.declaration import FleetPlan, VirtualMachine

PLAN = FleetPlan(vms=(VirtualMachine(name="web"),))
PROGRESS = [b'{"done":0,"total":20000}\n', b'{"done":15000,"total":20000}\n']
RESULT = b'{"added":["web"],"changed":[],"removed":[],"unchanged":7}\n'


class _Lines(httpx2.SyncByteStream):
    def __init__(self, lines: list[bytes]) -> None:
        self._lines = lines

    @override
    def __iter__(self) -> Iterator[bytes]:
        return iter(self._lines)


def server(*lines: bytes) -> Control:
    def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["Accept"] == "application/x-ndjson"
        return httpx2.Response(200, stream=_Lines(list(lines)))

    return Control("127.0.0.1:1", transport=httpx2.MockTransport(answer))


def terminal() -> Console:
    return Console(file=StringIO(), force_terminal=True, color_system=None, width=80)


def text_of(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_terminal_shows_a_bar_and_the_result_is_the_last_line() -> None:
    console = terminal()

    answer = fleet_apply.apply(server(*PROGRESS, RESULT), PLAN, None, console=console)

    assert answer.read(FleetApplied).unchanged == 7
    assert "15000/20000 VMs" in " ".join(text_of(console).split())


def test_elsewhere_there_is_no_bar() -> None:
    console = Console(file=StringIO(), force_terminal=False)

    fleet_apply.apply(server(*PROGRESS, RESULT), PLAN, None, console=console)

    assert text_of(console) == ""


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("name_taken", RefusedError),
        ("store_unavailable", ServerFailedError),
        ("internal", ServerFailedError),
    ],
)
def test_a_refusal_in_the_last_line_is_a_refusal(code: str, kind: type[CommandError]) -> None:
    last = b'{"error":{"code":"%s","message":"no","field":"name"}}\n' % code.encode()

    with pytest.raises(kind) as caught:
        fleet_apply.apply(server(*PROGRESS, last), PLAN, None, console=terminal())

    assert (caught.value.code, caught.value.field) == (code, "name")
    assert caught.value.body == last.strip()


def test_an_answer_without_a_last_line_says_to_apply_again() -> None:
    with pytest.raises(ServerFailedError) as caught:
        fleet_apply.apply(server(*PROGRESS), PLAN, None, console=terminal())

    assert caught.value.code == "broken_off"
    assert "again" in caught.value.advice[0]
