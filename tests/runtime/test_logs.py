"""What stands in a line of the server's log."""

import json
import logging
from collections.abc import Callable, Iterator
from datetime import datetime

import pytest

from forewarned.core.ids import ResourceName, ScopeId
from forewarned.core.transitions import Activated, ResourceAdded
from forewarned.runtime import logs
from forewarned.service.records import Commit
from forewarned.targets.http import Request, send
from tests.builders import MINUTE, NOON, SECOND
from tests.publishing.receiver import receiving

SCOPE = ScopeId("scope1")


@pytest.fixture(autouse=True)
def _root_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize("as_json", [False, True])
def test_facts_stand_beside_the_message_and_no_colours_of_a_library(
    capsys: pytest.CaptureFixture[str], *, as_json: bool
) -> None:
    logs.configure(level="info", as_json=as_json)
    extra = {"color_message": "\033[1mup\033[0m", "port": 8170}

    logging.getLogger("uvicorn.error").warning("up", extra=extra)

    [line] = capsys.readouterr().err.splitlines()
    assert "8170" in line
    assert "color" not in line


def test_what_befalls_many_vms_of_a_scope_alike_is_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure(level="info", as_json=True)
    names = [ResourceName(f"vm{number}") for number in range(25)]
    added = tuple(ResourceAdded(scope_id=SCOPE, at=NOON, resource=name) for name in names)

    logs.log_commit(Commit(transitions=(*added, Activated(scope_id=SCOPE, at=NOON))))

    activated, many = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert activated["message"] == "activated"
    assert many["message"] == "resource_added"
    assert many["resources"] == [*names[:9], "and 16 more"]


# --- time ----------------------------------------------------------------------------------------


def a_line(logged: logging.LogRecord) -> None:
    logging.getLogger("forewarned").handle(logged)


def at(instant: datetime) -> logging.LogRecord:
    """What the machine's clock said when the line was logged is in the record."""
    fields = {"name": "forewarned", "levelname": "INFO", "levelno": logging.INFO}
    return logging.makeLogRecord({**fields, "msg": "started", "created": instant.timestamp()})


def test_a_line_has_the_machines_time_and_the_servers_beside_it_where_they_differ(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure(level="info", as_json=False, clock=lambda: NOON + 10 * MINUTE)
    a_line(at(NOON))
    logs.configure(level="info", as_json=True, clock=lambda: NOON + 10 * MINUTE)
    a_line(at(NOON))

    text, as_json = capsys.readouterr().err.splitlines()
    assert text == "2026-01-05 12:00:00Z (clock 2026-01-05 12:10:00Z) INFO    started"
    assert json.loads(as_json) == {
        "at": "2026-01-05T12:00:00+00:00",
        "clock": "2026-01-05T12:10:00+00:00",
        "level": "info",
        "message": "started",
    }


@pytest.mark.parametrize(
    "clock",
    [None, lambda: NOON, lambda: NOON + SECOND],
    ids=["none", "the same", "a second ahead, as a virtual clock may start"],
)
def test_a_line_has_one_time_where_the_clocks_agree(
    capsys: pytest.CaptureFixture[str], clock: Callable[[], datetime] | None
) -> None:
    logs.configure(level="info", as_json=False, clock=clock)
    a_line(at(NOON))
    logs.configure(level="info", as_json=True, clock=clock)
    a_line(at(NOON))

    text, as_json = capsys.readouterr().err.splitlines()
    assert text == "2026-01-05 12:00:00Z INFO    started"
    assert "clock" not in json.loads(as_json)


# --- what comes from outside (S14) ---------------------------------------------------------------

FORGED = "web\n2026-01-05 12:00:00Z ERROR   forged\r\x1b[2J\x7f\x9b1m\u2028\u202e"


def controls(line: str) -> list[str]:
    return [char for char in line if not char.isprintable()]


@pytest.mark.parametrize("value", [FORGED, [FORGED], {"name": FORGED}], ids=["text", "list", "map"])
@pytest.mark.parametrize("as_json", [False, True])
def test_no_value_can_forge_a_line_or_steer_a_terminal(
    capsys: pytest.CaptureFixture[str], value: object, *, as_json: bool
) -> None:
    """S14: facts are names and reasons that come from outside."""
    logs.configure(level="info", as_json=as_json)

    logging.getLogger("forewarned").info("event gone", extra={"why": value})

    [line] = capsys.readouterr().err.splitlines()
    assert controls(line) == []


@pytest.mark.parametrize("as_json", [False, True])
def test_no_message_of_a_library_can_forge_a_line(
    capsys: pytest.CaptureFixture[str], *, as_json: bool
) -> None:
    """S14: our own messages are constant, those of libraries are not."""
    logs.configure(level="info", as_json=as_json)

    logging.getLogger("uvicorn.error").warning("Invalid request from %s", FORGED)

    [line] = capsys.readouterr().err.splitlines()
    assert controls(line) == []


def test_a_traceback_is_indented_so_that_no_error_can_forge_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """S14."""
    logs.configure(level="info", as_json=False)

    def fail() -> None:
        raise ValueError(FORGED)

    try:
        fail()
    except ValueError:
        logging.getLogger("forewarned").exception("a timer failed")

    first, *rest = capsys.readouterr().err.removesuffix("\n").split("\n")
    assert first.endswith("ERROR   a timer failed")
    assert any("ValueError: web" in line for line in rest)
    assert all(line.startswith("    ") for line in rest)
    assert controls("".join(rest)) == []


async def test_no_url_and_no_header_of_a_request_is_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure(level="debug", as_json=False)

    async with receiving() as receiver:
        url = f"{receiver.url}/services/hidden?code=hidden"
        headers = {"Authorization": "Bearer hidden"}
        answer = await send(Request(method="POST", url=url, headers=headers))

    assert answer.status == 200
    assert "hidden" not in capsys.readouterr().err
