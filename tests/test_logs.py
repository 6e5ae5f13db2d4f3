"""What stands in a line of the server's log."""

import logging
from collections.abc import Iterator

import pytest

from notbefore import logs
from tests.builders import NOON


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
    logs.configure(level="info", as_json=as_json, stamp=lambda: NOON)
    extra = {"color_message": "\033[1mup\033[0m", "port": 8170}

    logging.getLogger("uvicorn.error").info("up", extra=extra)

    [line] = capsys.readouterr().err.splitlines()
    assert "8170" in line
    assert "color" not in line
