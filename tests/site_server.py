"""A built folder goes in, a plain static host comes out, with the faults that real hosts have."""

import http.server
import math
import re
import socket
import sys
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

STRICT = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; object-src 'none'; base-uri 'none'"
)


class Fault(NamedTuple):
    """What the host answers for a file instead: another type, another body, nothing at all (``hang``), a hang-up
    (``drop``) or one after so many bytes (``cut``), another address; always, or only the first ``times``, or only where
    the address ends in the file's name (``named``)."""

    type: str | None = None
    body: bytes | None = None
    status: int = 200
    hang: bool = False
    drop: bool = False
    cut: int | None = None
    location: str | None = None
    times: float = math.inf
    named: bool = False


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serve the folder under ``server.prefix``, with the policy and the faults of the server."""

    type: str | None = None

    def do_GET(self) -> None:
        fault = self.fault()
        self.server.asked.append(self.path)
        self.type = fault.type
        if fault.hang:
            self.server.over.wait(60)
        elif fault.drop:
            self.hang_up()
        elif fault.cut is not None:
            self.send_until(fault.cut)
        elif fault.location:
            self.send_response(302)
            self.send_header("Location", fault.location)
            self.end_headers()
        elif fault.body is not None or fault.status != 200:
            self.send_response(fault.status)
            self.send_header("Content-Type", fault.type or "text/html")
            self.send_header("Content-Length", str(len(fault.body or b"")))
            self.end_headers()
            self.wfile.write(fault.body or b"")
        else:
            super().do_GET()

    def fault(self) -> Fault:
        bare = self.path.split("?")[0]
        for end, fault in self.server.faults.items():
            if (self.path if fault.named else bare).endswith(end) and self.server.used[end] < fault.times:
                self.server.used[end] += 1
                return fault
        return Fault()

    def hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def send_until(self, cut: int) -> None:
        """Answer from where the browser asks on, but hang up after ``cut`` bytes."""
        start = int(re.sub(r"\D", "", self.headers.get("Range", "0")))
        rest = Path(self.translate_path(self.path)).read_bytes()[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.send_header("Content-Range", f"bytes {start}-{start + len(rest) - 1}/{start + len(rest)}")
        self.end_headers()
        self.wfile.write(rest[:cut])
        self.wfile.flush()
        if len(rest) > cut:
            time.sleep(0.5)  # a browser throws away what it has not handed on when a connection breaks
            self.hang_up()

    def translate_path(self, path: str) -> str:
        return super().translate_path("/" + urllib.parse.unquote(path).removeprefix(self.server.prefix))

    def guess_type(self, path: str) -> str:
        return self.type or super().guess_type(path)

    def end_headers(self) -> None:
        if self.server.nosniff:
            self.send_header("X-Content-Type-Options", "nosniff")
        if self.server.policy:
            self.send_header("Content-Security-Policy", self.server.policy)
        self.send_header("Cache-Control", "no-store")
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(http.server.ThreadingHTTPServer):
    """A threaded server that is quiet about browsers hanging up."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving(
    folder: Path,
    *,
    prefix: str = "/",
    policy: str = STRICT,
    faults: dict[str, Fault] | None = None,
    headers: dict[str, str] | None = None,
    nosniff: bool = False,
) -> Iterator[Server]:
    """Serve ``folder`` while the block runs; ``server.url`` is the page, ``server.asked`` what was asked for."""
    server = Server(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    server.prefix, server.policy, server.faults = prefix, policy, faults or {}
    server.nosniff, server.used, server.headers = nosniff, Counter(), headers or {}
    server.asked, server.over = [], threading.Event()
    server.url = f"http://127.0.0.1:{server.server_address[1]}{urllib.parse.quote(prefix)}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
