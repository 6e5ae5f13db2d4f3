"""What docs/publishing.md promises: one command, ten lines of receiver, and nothing lost by a kill."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.waiting import wait_until
from tests.end_to_end.server_process import Server, environment, ready, start
from tests.postgresql.servers import free_port

GUIDE: Final = Path(__file__).resolve().parents[2] / "docs" / "publishing.md"
STEPS: Final = ("Scheduled", "Approved", "Started", "Completed")
SECRET: Final = re.compile(r"^whsec_\S+$", re.MULTILINE)
_SCRIPT: Final = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Receiver:
    """The program of the page. It prints a line for each message whose signature is right."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    @property
    def statuses(self) -> list[str]:
        """Of each message once: one that was on its way when the server was killed comes again."""
        return list({line.split()[1]: line.split()[0] for line in self._lines.copy()}.values())

    def wait_for(self, *statuses: str) -> None:
        wait_until(lambda: self.statuses == list(statuses), within=30)


@contextmanager
def receiving(folder: Path, secret: str, port: int) -> Iterator[Receiver]:
    [script] = _SCRIPT.findall(GUIDE.read_text(encoding="utf-8"))
    assert script.count("8180") == 1
    program = folder / "receive.py"
    program.write_text(script.replace("8180", str(port)))
    lines: list[str] = []
    with subprocess.Popen(
        [sys.executable, str(program), secret],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as running:
        reading = threading.Thread(target=lambda: lines.extend(running.stdout or ()))
        reading.start()
        try:
            yield Receiver(lines)
        finally:
            running.terminate()
            reading.join()


def command(server: Server, *words: str) -> str:
    """A command as it is typed, and what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "forewarned", *words],
        env=environment(FOREWARNED_CONTROL=f"http://{server.control}"),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


class Running:
    """A server that can be killed, and started again on what it has stored."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._start()

    def _start(self) -> None:
        self._process = start(self._folder)
        self.server = ready(self._process, self._folder)

    def end(self, how: signal.Signals) -> None:
        with self._process:
            self._process.send_signal(how)

    def kill(self) -> None:
        self.end(signal.SIGKILL)
        self._start()


@pytest.mark.parametrize(
    "killed_after",
    [
        pytest.param("", id="never killed"),
        pytest.param("Started", id="after Started"),
        *(
            pytest.param(status, id=f"after {status}", marks=pytest.mark.thorough)
            for status in ("Subscribed", "Scheduled", "Approved", "Completed")
        ),
    ],
)
def test_a_receiver_prints_each_step_of_a_reboot_in_order_whenever_the_server_is_killed(
    tmp_path: Path, killed_after: str
) -> None:
    """I23."""
    port = free_port()
    running = Running(tmp_path)

    def passed(step: str) -> None:
        if step == killed_after:
            running.kill()

    try:
        url = f"http://127.0.0.1:{port}/"
        printed = command(running.server, "subscription", "add", "ops", url)
        [secret] = SECRET.findall(printed)
        with receiving(tmp_path, secret, port) as receiver:
            passed("Subscribed")
            running.server.get()
            made = running.server.call(
                "POST", "/v1/events", {"type": "Reboot", "resources": ["web"]}
            )
            receiver.wait_for("Scheduled")
            passed("Scheduled")
            running.server.approve(made["events"][0]["event_id"])
            passed("Approved")
            receiver.wait_for(*STEPS[:3])
            passed("Started")
            running.server.call("POST", "/v1/clock/step", {"by": "20m"})
            passed("Completed")
            receiver.wait_for(*STEPS)
    finally:
        running.end(signal.SIGTERM)
