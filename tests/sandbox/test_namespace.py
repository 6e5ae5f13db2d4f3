"""A program whose only network is what its parent serves."""

import shutil
import subprocess
import sys

import pytest

from forewarned.sandbox import namespace
from forewarned.sandbox.namespace import NamespaceError, ProgramError

METADATA = ("169.254.169.254", 80)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces")


def _is_allowed() -> bool:
    words = ["unshare", "--net", "--map-current-user", "true"]
    return bool(shutil.which("unshare")) and not subprocess.run(words, check=False).returncode


needs_namespaces = pytest.mark.skipif(not _is_allowed(), reason="no namespaces are allowed here")

ASKING = """
import socket, sys
for address in sys.argv[1:]:
    try:
        with socket.create_connection((address, 80), timeout=30) as there:
            print(address, there.makefile().readline())
    except OSError as error:
        print(address, error.strerror)
"""


@needs_namespaces
def test_a_program_reaches_what_its_parent_serves_and_nothing_else(
    capfd: pytest.CaptureFixture[str],
) -> None:
    command = [sys.executable, "-c", ASKING, METADATA[0], "203.0.113.7"]
    spawned = namespace.spawn(command, variables={}, listen=[METADATA])

    spawned.go()
    with spawned.listeners[METADATA] as listener:
        connection, (peer, _) = listener.accept()
        with connection:
            connection.sendall(b"hello\n")

    assert spawned.process.wait(timeout=30) == 0
    assert capfd.readouterr().out == "169.254.169.254 hello\n\n203.0.113.7 Network is unreachable\n"
    assert peer == METADATA[0]


@pytest.mark.parametrize("listen", [None, pytest.param([METADATA], marks=needs_namespaces)])
def test_a_program_has_our_environment_and_what_is_added_to_it(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    listen: list[namespace.Listen] | None,
) -> None:
    monkeypatch.setenv("OURS", "1")
    words = ["sh", "-c", "echo $OURS $ADDED"]
    spawned = namespace.spawn(words, variables={"ADDED": "2"}, listen=listen)

    spawned.go()
    spawned.process.wait(timeout=30)
    for listener in spawned.listeners.values():
        listener.close()

    assert capfd.readouterr().out == "1 2\n"


def test_a_program_that_is_not_there_is_told_apart_from_one_that_fails() -> None:
    missing = namespace.spawn(["no-such-program"], variables={}, listen=None)
    forbidden = namespace.spawn(["/"], variables={}, listen=None)

    with pytest.raises(ProgramError, match="no-such-program") as why:
        missing.go()
    assert why.value.is_missing
    with pytest.raises(ProgramError) as why:
        forbidden.go()
    assert not why.value.is_missing


@needs_namespaces
def test_an_address_that_can_not_be_listened_at_is_named() -> None:
    twice = [METADATA, METADATA]

    with pytest.raises(NamespaceError, match=r"listening at 169.254.169.254:80: Address already"):
        namespace.spawn(["true"], variables={}, listen=twice)
