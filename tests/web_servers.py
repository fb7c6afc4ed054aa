"""A folder goes in, a real web server for it comes out: nginx, Caddy, Apache or Python's, on a free port."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PACKAGES = {"nginx": "nginx-light", "caddy": "caddy", "apache2": "apache2-bin"}
"""Program and the Debian package that brings it (tests/__main__.py installs them)."""

# A server is told whether to compress, which types it knows ("right", or "wrong": text/plain), whether to say nosniff.
NGINX = """
{user}daemon off; pid {work}/pid; error_log {work}/log; worker_processes 1;
events {{}}
http {{
  access_log off; default_type {default};
  {types}
  client_body_temp_path {work}/1; proxy_temp_path {work}/2; fastcgi_temp_path {work}/3; uwsgi_temp_path {work}/4;
  scgi_temp_path {work}/5;
  gzip {gzip}; gzip_static {gzip}; gzip_types *; {nosniff}
  server {{ listen 127.0.0.1:{port}; root "{folder}"; }}
}}
"""
NGINX_TYPES = "types { text/html html; text/css css; text/javascript js; image/svg+xml svg; %s }"
CADDY = """
{{
  admin off
  auto_https off
  storage file_system {work}
}}
http://127.0.0.1:{port} {{
  root * "{folder}"
  {gzip}
  {nosniff}
  {types}
  file_server
}}
"""
APACHE = """
ServerRoot {work}
ServerName localhost
PidFile {work}/pid
ErrorLog {work}/log
Listen 127.0.0.1:{port}
{user}{modules}
TypesConfig /dev/null
{types}
DocumentRoot "{folder}"
DirectoryIndex index.html
{gzip}
{nosniff}
"""
APACHE_MODULES_FOLDER = Path("/usr/lib/apache2/modules")
APACHE_MODULES = ("mpm_event", "authz_core", "mime", "dir", "filter", "deflate", "headers")
APACHE_TYPES = ("text/html .html", "text/css .css", "text/javascript .js", "image/svg+xml .svg")


def program(name: str) -> str | None:
    """Find a server; Debian keeps them where only root looks."""
    if name == "apache2" and not APACHE_MODULES_FOLDER.is_dir():
        return None  # an Apache that is arranged otherwise than Debian's
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"]))


def write_nginx(options: dict, port: int, folder: Path, work: Path) -> list[str]:
    wrong = options["types"] == "wrong"
    types = NGINX_TYPES % ("text/plain wasm zip json;" if wrong else "application/wasm wasm; application/json json;")
    text = NGINX.format(
        user="user root;\n" if os.geteuid() == 0 else "",
        work=work,
        port=port,
        folder=folder,
        types=types,
        default="text/plain" if wrong else "application/octet-stream",
        gzip="on" if options["gzip"] else "off",
        nosniff="add_header X-Content-Type-Options nosniff;" if options["nosniff"] else "",
    )
    (work / "conf").write_text(text)
    return ["-c", str(work / "conf"), "-e", str(work / "log"), "-p", str(work)]


def write_caddy(options: dict, port: int, folder: Path, work: Path) -> list[str]:
    wrong = "header *.wasm Content-Type text/plain\n  header *.zip Content-Type text/plain"
    text = CADDY.format(
        work=work,
        port=port,
        folder=folder,
        types=wrong if options["types"] == "wrong" else "",
        gzip="encode gzip" if options["gzip"] else "",
        nosniff="header X-Content-Type-Options nosniff" if options["nosniff"] else "",
    )
    (work / "conf").write_text(text)
    return ["run", "--config", str(work / "conf"), "--adapter", "caddyfile"]


def write_apache2(options: dict, port: int, folder: Path, work: Path) -> list[str]:
    modules = [f"LoadModule {name}_module {APACHE_MODULES_FOLDER}/mod_{name}.so\n" for name in APACHE_MODULES]
    known = [*APACHE_TYPES, *(["text/plain .wasm .zip"] if options["types"] == "wrong" else ["application/wasm .wasm"])]
    text = APACHE.format(
        work=work,
        port=port,
        folder=folder,
        user="User www-data\nGroup www-data\n" if os.geteuid() == 0 else "",
        modules="".join(modules),
        types="\n".join(f"AddType {entry}" for entry in known),
        gzip="SetOutputFilter DEFLATE" if options["gzip"] else "",
        nosniff="Header set X-Content-Type-Options nosniff" if options["nosniff"] else "",
    )
    (work / "conf").write_text(text)
    return ["-D", "FOREGROUND", "-f", str(work / "conf")]


WRITERS = {"nginx": write_nginx, "caddy": write_caddy, "apache2": write_apache2}


@contextmanager
def web_server(
    name: str, folder: Path, work: Path, *, gzip: bool = False, types: str = "right", nosniff: bool = False
) -> Iterator[str]:
    """Run the server ``name`` (``python``: http.server) on ``folder``, its files in ``work``; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = {"gzip": gzip, "types": types, "nosniff": nosniff}
    if name == "python":
        command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(folder)]
    else:
        command = [str(program(name)), *WRITERS[name](options, port, folder, work)]
    home = {"HOME": str(work), "XDG_DATA_HOME": str(work), "XDG_CONFIG_HOME": str(work)}
    with (
        (work / "said").open("wb") as said,
        subprocess.Popen(command, stdout=said, stderr=said, env={**os.environ, **home}) as process,
    ):
        try:
            wait_for(port, process, work)
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def wait_for(port: int, process: subprocess.Popen, work: Path) -> None:
    """Wait until the server answers; if it ends instead, say what it said."""
    over = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < over:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    said = "\n".join(path.read_text(errors="replace") for path in (work / "said", work / "log") if path.is_file())
    raise AssertionError(f"{process.args} did not start: {said}")
