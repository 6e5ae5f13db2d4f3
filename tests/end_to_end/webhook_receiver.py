"""A receiver of webhooks, in a thread: it keeps what arrives, in order, and answers as it is told."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from typing_extensions import override

from tests.cluster.waiting import wait_until


class Arrived(NamedTuple):
    id: str
    scope: str
    status: str


class WebhookReceiver:
    def __init__(self, url: str) -> None:
        self.url = url
        self.arrived: list[Arrived] = []
        """All attempts, also those that were not answered."""
        self.before_answer: Callable[[Arrived], int] = lambda _: 200
        """Called with each, in a thread of its own; returns the status of the answer."""

    def statuses(self, scope: str | None = None) -> list[str]:
        """Of each message once, in the order in which they first arrived."""
        known = {each.id: each for each in reversed(self.arrived)}
        first = sorted(known.values(), key=self.arrived.index)
        return [each.status for each in first if scope is None or each.scope == scope]

    def wait_for(self, *statuses: str, scope: str | None = None) -> None:
        wait_until(lambda: self.statuses(scope) == [*statuses])


@contextlib.contextmanager
def webhook_receiver() -> Iterator[WebhookReceiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body: Any = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            content = body["data"]
            arrived = Arrived(self.headers["webhook-id"], content["scope"], content["status"])
            receiver.arrived.append(arrived)
            status = receiver.before_answer(arrived)
            with contextlib.suppress(OSError):
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = WebhookReceiver(f"http://127.0.0.1:{server.server_port}/")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
