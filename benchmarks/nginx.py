"""The practical limit: nginx, which is C, returning the same bytes from its configuration."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import exchange, programs, usage
from benchmarks.exchange import Answer
from benchmarks.ports import free_ports
from benchmarks.started import StartError, end_of_log, started

# One process without a log and without an end to a connection's requests: nginx at its best.
_CONFIGURATION: Final = """
daemon off; master_process off; worker_processes 1; worker_rlimit_nofile 30000;
pid {folder}/pid; error_log stderr error;
events {{ worker_connections 25000; }}
http {{
    access_log off; keepalive_requests 1000000000; keepalive_timeout 600s;
    default_type "application/json; charset=utf-8";
    client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
    uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
    server {{
        listen 127.0.0.1:{plain} backlog=4096;
        listen 127.0.0.1:{deferred} backlog=4096 deferred;
        location / {{ add_header ETag '"1"'; return 200 '{body}'; }}
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class Nginx:
    pids: list[int]
    plain: int
    """port"""
    deferred: int
    """port whose connections are accepted with their first request (TCP_DEFER_ACCEPT)"""


@contextlib.contextmanager
def serving(folder: Path, answer: Answer, *, prefix: Sequence[str]) -> Iterator[Nginx]:
    folder.mkdir(parents=True, exist_ok=True)
    plain, deferred = free_ports(2)
    body = answer.body.decode().replace("'", "\\'")
    (folder / "nginx.conf").write_text(
        _CONFIGURATION.format(folder=folder, plain=plain, deferred=deferred, body=body)
    )
    command = [*prefix, programs.need("nginx"), "-p", str(folder), "-c", "nginx.conf"]
    with started(command, folder) as running:
        wait_for(plain, folder)
        yield Nginx(usage.family(running.pid), plain, deferred)


def wait_for(port: int, folder: Path, *, within: float = 15) -> None:
    until = time.monotonic() + within
    while True:
        try:
            exchange.ask(port, exchange.poll())
        except OSError as error:
            if time.monotonic() > until:
                raise StartError(f"nothing listens on port {port}: {end_of_log(folder)}") from error
        else:
            return
