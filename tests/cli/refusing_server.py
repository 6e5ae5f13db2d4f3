"""A small server that refuses every request, with the errors of the control API."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Final

from typing_extensions import override

from forewarned.security.certificates import ServerCertificate

TOKEN: Final = "fw_Zm9vYmFy-secret_0"
"""The one token it knows. Its role is too low for everything."""


@dataclass(frozen=True, slots=True)
class RefusingServer:
    url: str
    shown: list[str | None] = field(default_factory=list)
    """What each request had in `Authorization`."""


@contextmanager
def refusing_server(
    tls: ServerCertificate | None = None, *, host: str = "127.0.0.1", leads_to: str = ""
) -> Iterator[RefusingServer]:
    """On any free port of loopback; `leads_to` makes every answer a redirect."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            shown = self.headers.get("Authorization")
            found.shown.append(shown)
            status, code = _answer(shown)
            body = json.dumps({"error": {"code": code, "message": f"said {code}", "field": None}})
            if leads_to:
                self.send_response(307)
                self.send_header("Location", f"{leads_to}{self.path}")
                self.end_headers()
                return
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        do_PUT = do_PATCH = do_POST = do_DELETE = do_GET  # noqa: N815  # the library's names

        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer((host, 0), Handler) as server:
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.certificate, tls.key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        found = RefusingServer(f"{scheme}://{host}:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


def _answer(shown: str | None) -> tuple[int, str]:
    if shown is None:
        return 401, "token_missing"
    if shown != f"Bearer {TOKEN}":
        return 401, "token_invalid"
    return 403, "role_too_low"
