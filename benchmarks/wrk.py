"""wrk, the load of the fast rows: quick enough that the server is what is measured."""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks import exchange, programs
from benchmarks.exchange import BrokenExchangeError

CONNECTIONS: Final = 64


@dataclass(frozen=True, slots=True)
class Polled:
    requests: int
    failed: int


def parse(output: str) -> Polled:
    requests = re.search(r"^\s*(\d+) requests in ", output, re.MULTILINE)
    if requests is None:
        raise BrokenExchangeError(f"wrk printed no count: {output[-500:]}")
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", output)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+)", output)
    failed = int(refused[1]) if refused else 0
    return Polled(int(requests[1]), failed + sum(map(int, errors.groups() if errors else ())))


def run(port: int, seconds: float, *, headers: Sequence[str], prefix: Sequence[str]) -> Polled:
    url = f"http://{exchange.LOOPBACK}:{port}{exchange.DOCUMENT}"
    options = ["-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s"]
    named = [word for header in headers for word in ("-H", header)]
    outcome = subprocess.run(
        [*prefix, programs.need("wrk"), *options, *named, url],
        capture_output=True,
        text=True,
        timeout=seconds + 30,
        check=True,
    )
    return parse(outcome.stdout)
