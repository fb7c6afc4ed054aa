"""A folder with ``index.html`` and ``static/`` goes in, a local web server for exactly these comes out."""

import errno
import os
import shutil
import socketserver
import sys
import webbrowser
from contextlib import suppress
from email.utils import formatdate, parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from hosting.report import HostingError, say
from pipesched.model import Message

HOST = "127.0.0.1"
PORTS_TRIED = 20

CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; "
    "worker-src 'self' blob:; object-src 'none'; base-uri 'self'"
)

# Not the mimetypes module: it asks the system, and some systems say text/plain for .js.
MIME_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
    ".zip": "application/zip",
}


class Server(ThreadingHTTPServer):
    """A threaded server that is quiet about browsers hanging up."""

    request_queue_size = 64
    allow_reuse_address = os.name != "nt"  # there it would let two servers share a port

    def server_bind(self) -> None:
        """Bind without asking DNS for our own name, which offline can take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]  # host is a str here

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report what is our fault only."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD for ``index.html`` and files below ``static/`` of ``root``."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "pipesched", ""
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(code)d %(message)s\n"
    timeout = 60  # an idle connection ends, and its thread with it

    def __init__(self, *args: Any, root: Path) -> None:
        self.root = root
        super().__init__(*args)

    def do_GET(self) -> None:
        """Answer with the file, or with 304 if the browser has it already."""
        path = locate(self.root, self.path)
        try:
            if path is None:
                raise FileNotFoundError
            with path.open("rb") as stream:
                self._answer(path, stream)
        except (FileNotFoundError, IsADirectoryError, PermissionError):
            self.send_error(HTTPStatus.NOT_FOUND)

    do_HEAD = do_GET

    def _answer(self, path: Path, stream: BinaryIO) -> None:
        status = os.fstat(stream.fileno())
        etag = f'"{status.st_mtime_ns:x}-{status.st_size:x}"'
        unchanged = self._is_known(etag, status.st_mtime)
        self.send_response(HTTPStatus.NOT_MODIFIED if unchanged else HTTPStatus.OK)
        self.send_header("ETag", etag)
        self.send_header("Last-Modified", formatdate(status.st_mtime, usegmt=True))
        self.send_header("Cache-Control", "no-cache")
        if not unchanged:
            self.send_header("Content-Type", MIME_TYPES.get(path.suffix.lower(), "application/octet-stream"))
            self.send_header("Content-Length", str(status.st_size))
        self.end_headers()
        if self.command == "GET" and not unchanged:
            shutil.copyfileobj(stream, self.wfile)

    def _is_known(self, etag: str, modified: float) -> bool:
        if tags := self.headers.get("If-None-Match"):
            return etag in tags or tags.strip() == "*"
        try:
            since = parsedate_to_datetime(self.headers.get("If-Modified-Since", ""))
            return int(modified) <= since.timestamp()
        except ValueError:
            return False

    def end_headers(self) -> None:
        """End the headers of any answer, errors too, with the two that make the page safe."""
        self.send_header("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal for what its reader has to know."""


def locate(root: Path, url: str) -> Path | None:
    """Find the file that the path of ``url`` names below ``root``; None if there is none that may be served."""
    parts = unquote(urlsplit(url).path).removeprefix("/").split("/")
    if parts == [""]:
        parts = ["index.html"]
    if parts != ["index.html"] and parts[0] != "static":
        return None
    if any(not part or part.startswith(".") or set(part) & set("\\:\0") for part in parts):
        return None
    path = root.joinpath(*parts).resolve()
    return path if path.is_relative_to((root / parts[0]).resolve()) and path.is_file() else None


def make_server(root: Path, port: int) -> Server:
    """Open a server for ``root`` on ``port``, or on the next free one; 0 means any.

    Raises
    ------
    HostingError
        None of the twenty ports from ``port`` on is free.
    """
    handler = partial(Handler, root=root)
    last = min(port + PORTS_TRIED - 1, 65535) if port else 0
    for candidate in range(port, last + 1):
        try:
            return Server((HOST, candidate), handler)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
    raise HostingError("hosting.no_port", first=str(port), last=str(last))


def serve(root: Path, port: int, open_browser: bool) -> None:
    """Serve ``root`` until Ctrl-C, saying where; show it in a browser if asked to and there is one."""
    with make_server(root, port) as server, suppress(KeyboardInterrupt):
        if port not in (0, server.server_port):
            print(say(Message("hosting.port_taken", {"port": str(port), "next": str(server.server_port)})))
        print(say(Message("hosting.serving", {"url": server.url})), flush=True)
        if open_browser and _has_screen():
            webbrowser.open(server.url)
        server.serve_forever()
    print()


def _has_screen() -> bool:
    # Without one webbrowser would find a text browser and take the terminal over.
    return sys.platform in ("win32", "darwin") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
