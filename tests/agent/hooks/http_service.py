"""An HTTP service on loopback that answers as a test says, and remembers what it was asked."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from typing_extensions import override

from forewarned.clock import wall_clock
from forewarned.security.certificates import provide


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    # Any: JSON is whatever it is; each test says what it expects.
    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int = 200
    json: object = None
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Service:
    url: str
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def answering(
    answer: Callable[[Asked], Reply], tls: ssl.SSLContext | None = None
) -> Iterator[Service]:
    service = Service("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def __getattr__(self, name: str) -> Callable[[], None]:
            # One for every method there is.
            if name.startswith("do_"):
                return self.reply
            raise AttributeError(name)

        def reply(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            asked = Asked(
                method=self.command,
                path=self.path,
                headers={name.lower(): value for name, value in self.headers.items()},
                body=self.rfile.read(length),
            )
            service.asked.append(asked)
            reply = answer(asked)
            body = reply.text.encode() if reply.json is None else json.dumps(reply.json).encode()
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.json is not None:
                self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    scheme = "http"
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    service.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def of_its_own_authority(folder: Path) -> ssl.SSLContext:
    """A certificate for this address, in order, of an authority that is in the folder alone."""
    made = provide(folder, names=["127.0.0.1"], now=wall_clock())
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(made.certificate, made.key)
    return tls
