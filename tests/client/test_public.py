"""The public face: its names, its types, and what importing it costs."""

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import forewarned.client
from forewarned.client import EventSource, EventStatus, EventType, ScheduledEventsError

LONGEST_IMPORT = 0.150


def test_all_is_what_is_there_and_sorted() -> None:
    # Letters only: pytest puts names of its own into modules whose assertions it rewrites.
    public = [name for name in vars(forewarned.client) if name[0].isalpha()]

    assert forewarned.client.__all__ == sorted(public)


def test_every_error_is_one_of_ours() -> None:
    errors = [
        value
        for name, value in vars(forewarned.client).items()
        if name.endswith("Error") and isinstance(value, type)
    ]

    assert len(errors) == 7
    assert all(issubclass(error, ScheduledEventsError) for error in errors)
    assert all(error.__doc__ for error in errors)


@pytest.mark.parametrize("kind", [EventType, EventStatus, EventSource])
def test_values_nobody_has_seen_are_strings_that_say_so(
    kind: type[EventType | EventStatus | EventSource],
) -> None:
    unseen = kind("Blackout")

    assert unseen == "Blackout" == f"{unseen}"
    assert {unseen: 1} == {kind("Blackout"): 1}
    assert not unseen.is_known
    assert pickle.loads(pickle.dumps(unseen)) == unseen  # noqa: S301 - our own
    assert all(member.is_known and kind(member.value.upper()) is member for member in kind)
    with pytest.raises(ValueError, match="5"):
        kind(5)  # type: ignore[arg-type]  # that it is refused is the point


def _python(program: str) -> str:
    """Printed by a Python of its own, that is not measured for coverage."""
    kept = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}
    done = subprocess.run(
        [sys.executable, "-c", program], env=kept, stdout=subprocess.PIPE, check=True, text=True
    )
    return done.stdout


def test_importing_takes_little_time() -> None:
    """CPU time, best of several: a busy machine says nothing about the import."""
    program = (
        "import time; began = time.process_time(); import forewarned.client; "
        "print(time.process_time() - began)"
    )

    assert min(float(_python(program)) for _ in range(7)) < LONGEST_IMPORT


def test_importing_brings_neither_the_http_library_nor_the_server() -> None:
    loaded = set(_python("import sys, forewarned.client; print(*sys.modules)").split())

    assert not {"httpx2", "asyncio", "msgspec", "http.client", "ssl"} & loaded
    ours = {name.split(".")[1] for name in loaded if name.startswith("forewarned.")}
    assert ours == {"client", "config"}


def test_no_module_needs_what_only_unix_has() -> None:
    folder = Path(forewarned.client.__file__).parent
    sources = {module.name: module.read_text() for module in folder.rglob("*.py")}

    assert not [
        name
        for name, text in sources.items()
        if re.search(r"import (fcntl|grp|pwd|resource|termios)\b", text)
    ]


def test_the_types_are_what_users_rely_on() -> None:
    """`typing_client.py` is checked by mypy with everything else; here it must also run."""
    source = Path(__file__).with_name("typing_client.py").read_text()

    compile(source, "typing_client.py", "exec")
    assert "assert_type" in source
