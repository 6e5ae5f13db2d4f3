"""`make bench`: processor time of the server per poll, against the limit.

Both servers are real processes. Rounds alternate, so that a noisy machine disturbs both alike; only
the ratio means anything. The load comes from this process, over keep-alive connections, one request
at a time on each, as VMs poll.
"""

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import uvloop
from rich.console import Console
from rich.progress import track
from rich.table import Table

REQUEST: Final = (
    b"GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\n"
    b"Host: 169.254.169.254\r\nMetadata: true\r\n\r\n"
)
CONNECTIONS: Final = 32


@dataclass(frozen=True, slots=True)
class Subject:
    name: str
    pid: int
    port: int


@click.command()
@click.option("--rounds", default=7, show_default=True, help="Alternating rounds.")
@click.option("--polls", default=40_000, show_default=True, help="Polls a round.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def main(rounds: int, polls: int, *, as_json: bool) -> None:
    """Measure the poll path against a server that does nothing but answer."""
    if not Path("/proc/self/stat").exists():
        raise click.ClickException("processor time is read from /proc, which is Linux's")
    with tempfile.TemporaryDirectory() as folder, _notbefore(folder) as product:
        answer = _one_answer(product.port)
        with _limit(answer) as limit:
            figures = _measure(product, limit, rounds, polls, quiet=as_json)
    ratios = [mine / least for mine, least in figures]
    report = {
        "polls_a_round": polls,
        "notbefore_us": statistics.median(mine for mine, _ in figures),
        "limit_us": statistics.median(least for _, least in figures),
        "ratio": statistics.median(ratios),
        "ratio_lowest": min(ratios),
        "ratio_highest": max(ratios),
    }
    if as_json:
        click.echo(json.dumps(report))
        return
    table = Table("server", "µs of processor time a poll", "against the limit")
    table.add_row("limit", f"{report['limit_us']:.1f}", "1.00")
    spread = f"{report['ratio']:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    table.add_row("NotBefore", f"{report['notbefore_us']:.1f}", spread)
    Console().print(table)


def _measure(
    product: Subject, limit: Subject, rounds: int, polls: int, *, quiet: bool
) -> list[tuple[float, float]]:
    figures = []
    for number in track(range(rounds + 1), "measuring", disable=quiet):
        pair = (_cost(product, polls), _cost(limit, polls))
        # The first round warms both up.
        if number:
            figures.append(pair)
    return figures


def _cost(subject: Subject, polls: int) -> float:
    """Microseconds of the server's processor time a poll."""
    before = _processor_time(subject.pid)
    uvloop.run(_load(subject.port, polls))
    return (_processor_time(subject.pid) - before) / polls * 1e6


def _processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _load(port: int, polls: int) -> None:
    await asyncio.gather(*(_poll(port, polls // CONNECTIONS) for _ in range(CONNECTIONS)))


async def _poll(port: int, times: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    size = 0
    for _ in range(times):
        writer.write(REQUEST)
        if not size:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(re.findall(rb"(?i)content-length: (\d+)", head)[0])
            await reader.readexactly(size)
            size += len(head)
        else:
            await reader.readexactly(size)
    writer.close()
    await writer.wait_closed()


def _one_answer(port: int) -> bytes:
    async def ask() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(re.findall(rb"(?i)content-length: (\d+)", head)[0])
        body = await reader.readexactly(size)
        writer.close()
        return head + body

    return uvloop.run(ask())


@contextmanager
def _notbefore(folder: str) -> Iterator[Subject]:
    command = [sys.executable, "-m", "notbefore", "serve", "--data", folder]
    flags = ["--metadata", "127.0.0.1:0", "--control", "127.0.0.1:0", "--log-level", "warning"]
    with _started([*command, *flags], b"", _port_of_metadata) as (pid, port):
        yield Subject("NotBefore", pid, port)


@contextmanager
def _limit(answer: bytes) -> Iterator[Subject]:
    with _started([sys.executable, "-m", "benchmarks.limit"], answer, int) as (pid, port):
        yield Subject("limit", pid, port)


def _port_of_metadata(line: str) -> int | None:
    found = re.match(r"\s*metadata\s+http://127.0.0.1:(\d+)", line)
    return None if found is None else int(found[1])


@contextmanager
def _started(
    command: list[str], given: bytes, port_in: Callable[[str], int | None]
) -> Iterator[tuple[int, int]]:
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write(given)
    running.stdin.close()
    try:
        ports = (port_in(line.decode()) for line in running.stdout)
        yield running.pid, next(port for port in ports if port is not None)
    finally:
        running.terminate()
        running.wait()
        running.stdout.close()


if __name__ == "__main__":
    main()
