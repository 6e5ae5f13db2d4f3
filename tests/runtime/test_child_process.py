"""What a supervisor tells its children, and what becomes of them without it."""

import contextlib
import os
import select
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from forewarned.config.values import DatabaseUrl
from forewarned.runtime import child_process
from forewarned.runtime.listeners.sockets import Addresses
from forewarned.runtime.settings import load
from forewarned.service.subscriptions.targets import Webhook

ADDRESSES = Addresses(metadata_url="http://127.0.0.1:1", control_url="", arm_url=None)
FLAGS: list[dict[str, object]] = [
    {},
    {"mode": "service", "rate": "0.25", "hosts": "a.test,b.test", "max_user_events": "10"},
    {"clock": "paused", "silence": "90m", "first_call_delay": "1500ms", "default_vm": "web"},
    {"clock": "0.5x", "fleet": "none.toml", "metadata": "[::1]:8169", "workers": "0"},
    {"mode": "service", "arm": "off"},
    {"mode": "service", "control": "0.0.0.0:8170", "control_access": "token"},
    {"arm": "[::1]:0"},
    {"data": "none", "log_format": "json", "address_range": "10.1.0.0/16"},
]


@pytest.mark.parametrize("flags", FLAGS)
def test_a_child_has_the_very_settings_of_its_supervisor(flags: dict[str, object]) -> None:
    resolved = load(flags=flags, environ={})

    told = child_process.brief(resolved, supervisor=1, listener=3, addresses=ADDRESSES)

    assert told.resolved() == resolved


def test_a_fleet_file_with_the_name_of_nothing_is_still_a_file(tmp_path: Path) -> None:
    named = tmp_path / "forewarned.toml"
    named.write_text('fleet = "./none"\nfreeze_impact = "7s"\n')

    resolved = load(flags={}, environ={}, path=named)
    told = child_process.brief(resolved, supervisor=1, listener=3, addresses=ADDRESSES)

    assert told.resolved().settings.fleet == tmp_path / "none"
    assert told.resolved().settings.freeze_impact == timedelta(seconds=7)


def test_a_child_knows_the_subscriptions_of_the_settings_file(tmp_path: Path) -> None:
    named = tmp_path / "forewarned.toml"
    named.write_text(
        '[[subscriptions]]\nname = "ops"\n'
        'target = { kind = "webhook", url = "https://ops.example", secret_file = "secret" }\n'
    )

    resolved = load(flags={}, environ={}, path=named)
    told = child_process.brief(resolved, supervisor=1, listener=3, addresses=ADDRESSES)

    [declared] = told.resolved().subscriptions.declared()
    assert [declared] == [*resolved.subscriptions.declared()]
    assert declared.target == Webhook(
        url="https://ops.example", secret_file=str(tmp_path / "secret")
    )


def test_a_child_can_sign_in_to_the_database() -> None:
    url = "postgresql://me:secret@db/forewarned"

    resolved = load(flags={"mode": "service", "store": url}, environ={})
    told = child_process.brief(resolved, supervisor=1, listener=3, addresses=ADDRESSES)

    assert told.resolved().settings.store == DatabaseUrl(url)


# A child that is so busy that it never looks whether its supervisor is still there.
BUSY = "from forewarned.runtime import child_process; child_process.receive(); print('told', flush=True); input()"
# A supervisor that tells it all, lets it speak for itself, and waits to be killed.
SUPERVISOR = """
import os, subprocess, sys
from forewarned.runtime import child_process
from forewarned.runtime.listeners.sockets import Addresses
from forewarned.runtime.settings import load
from forewarned.service.subscriptions.targets import Webhook
import msgspec
brief = child_process.brief(
    load(flags={}, environ={}), supervisor=os.getpid(), listener=0,
    addresses=Addresses(metadata_url="", control_url="", arm_url=None),
)
# Its standard input outlives the supervisor: a pipe whose other end the test holds.
held, told = os.pipe()
os.write(told, msgspec.json.encode(brief) + b"\\n")
os.set_inheritable(told, True)
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=held, pass_fds=[told])
print(child.pid, flush=True)
child.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_child_that_is_busy_does_not_outlive_a_supervisor_that_is_killed() -> None:
    """I23: a writer that went on would hold the store, and start events beside its successor."""
    words = [sys.executable, "-c", SUPERVISOR, BUSY]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        child = os.pidfd_open(int(supervisor.stdout.readline()))
        try:
            assert supervisor.stdout.readline() == "told\n"

            supervisor.kill()

            # Readable once the process has ended, whoever its parent is by then.
            ended, _, _ = select.select([child], [], [], 10)
            assert ended == [child]
        finally:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(child, signal.SIGKILL)
            os.close(child)
