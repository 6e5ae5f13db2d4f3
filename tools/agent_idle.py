"""What an idle agent uses: CPU time and memory, as Linux counts them.

    python -m tools.agent_idle [SECONDS]

Once polling a service that answers like Azure's, with a poll a second; and once against
Forewarned's own server, which holds each request until there is news.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from typing_extensions import override

SETTLED: Final = 5.0
"""Seconds for the agent to start and poll for the first time."""
_FILE: Final = """\
[agent]
state = {state}
listen = "127.0.0.1:0"
[hooks.tell]
kind = "log"
[[rules]]
name = "any"
prepare = ["tell"]
"""
_CONTROL: Final = re.compile(r"^\s*metadata\s+(http://\S+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    core: float
    """The share of one core."""
    memory: int
    """Bytes of resident memory."""
    polls: float | None
    """Requests a second, if they were counted."""


class _LikeAzure(BaseHTTPRequestHandler):
    """A service without ETag or long poll: every request gets a document."""

    protocol_version = "HTTP/1.1"
    polls = 0

    def do_GET(self) -> None:
        body: dict[str, object] = {"DocumentIncarnation": 1, "Events": []}
        if "/instance" in self.path:
            body = {"compute": {"name": "web_0"}}
        else:
            type(self).polls += 1
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    @override
    def log_message(self, *_: object) -> None:
        pass


def polling(seconds: float) -> Cost:
    """A poll a second."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _LikeAzure)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with _agent(f"http://127.0.0.1:{server.server_port}") as pid:
            return _measured(pid, seconds, lambda: _LikeAzure.polls)
    finally:
        server.shutdown()
        server.server_close()


def waiting(seconds: float) -> Cost:
    """The long poll."""
    with tempfile.TemporaryDirectory() as folder:
        doors = [w for d in ("metadata", "control") for w in (f"--{d}", "127.0.0.1:0")]
        command = [sys.executable, "-m", "forewarned", "serve", "--arm", "off", *doors]
        with subprocess.Popen(
            [*command, "--data", f"{folder}/state", "--workers", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=_environment(),
        ) as running:
            try:
                assert running.stdout is not None
                found = next(m[1] for line in running.stdout if (m := _CONTROL.match(line)))
                with _agent(f"{found}/vm/web") as pid:
                    return _measured(pid, seconds)
            finally:
                running.terminate()


@contextlib.contextmanager
def _agent(endpoint: str) -> Iterator[int]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "agent.toml")
        file.write_text(_FILE.format(state=json.dumps(f"{folder}/state")))
        with subprocess.Popen(
            [sys.executable, "-m", "forewarned", "agent", "run", "--config", str(file)],
            env=_environment() | {"FOREWARNED_ENDPOINT": endpoint},
            stderr=subprocess.DEVNULL,
        ) as running:
            try:
                yield running.pid
            finally:
                running.send_signal(signal.SIGTERM)


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(("FOREWARNED_", "COVERAGE_"))}


def _measured(pid: int, seconds: float, polls: Callable[[], int] | None = None) -> Cost:
    pause = threading.Event()
    pause.wait(SETTLED)
    began, spent = time.monotonic(), _nanoseconds(pid)
    polled = polls() if polls else 0
    pause.wait(seconds)
    took = time.monotonic() - began
    return Cost(
        core=(_nanoseconds(pid) - spent) / 1e9 / took,
        memory=_resident(pid),
        polls=(polls() - polled) / took if polls else None,
    )


def _nanoseconds(pid: int) -> int:
    """CPU time of all threads together: finer than the ticks of /proc/PID/stat."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    for name, measure in (("a poll a second", polling), ("the long poll", waiting)):
        cost = measure(seconds)
        rate = "" if cost.polls is None else f", {cost.polls:.2f} polls/s"
        print(f"{name}: {cost.core:.3%} of a core, {cost.memory / 1e6:.1f} MB{rate}")


if __name__ == "__main__":
    main()
