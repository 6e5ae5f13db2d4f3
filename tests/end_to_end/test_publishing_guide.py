"""What docs/publishing.md promises: one command, ten lines of receiver, and nothing lost by a kill."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.cluster.waiting import wait_until
from tests.end_to_end.mortal_server import mortal_server
from tests.end_to_end.server_process import Server, environment
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


def test_a_receiver_prints_each_step_of_a_reboot_in_order_although_the_server_is_killed(
    tmp_path: Path,
) -> None:
    """I23."""
    port = free_port()
    with mortal_server(tmp_path) as mortal:
        url = f"http://127.0.0.1:{port}/"
        printed = command(mortal.server, "subscription", "add", "ops", url)
        [secret] = SECRET.findall(printed)
        with receiving(tmp_path, secret, port) as receiver:
            mortal.server.get()
            made = mortal.server.call(
                "POST", "/v1/events", {"type": "Reboot", "resources": ["web"]}
            )
            mortal.server.approve(made["events"][0]["event_id"])
            receiver.wait_for(*STEPS[:3])
            mortal.kill()
            mortal.server.call("POST", "/v1/clock/step", {"by": "20m"})
            receiver.wait_for(*STEPS)
