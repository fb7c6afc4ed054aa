"""A real Firefox (by WebDriver BiDi) or WebKit (by WebDriver, on its own display) goes in, a tab to drive comes out.

Playwright's own builds of both are in no package registry, and it asks a stock Firefox for what that does not know yet.
"""

import base64
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

PACKAGES = {"firefox": "firefox-esr", "webkit": "webkit2gtk-driver xvfb"}
"""Engine and the Debian packages that bring it (tests/__main__.py installs them)."""
FIREFOX = "PIPESCHED_FIREFOX"
PLACES = ("/Applications/Firefox.app/Contents/MacOS/firefox", "%ProgramFiles%/Mozilla Firefox/firefox.exe")
PATIENCE = 120  # seconds; a machine that is busy takes a while to start Python
PREFERENCES = {
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "intl.accept_languages": "en-US",
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
}
KEYS = {"Tab": "\ue004", "End": "\ue010", "Home": "\ue011", "Left": "\ue012", "Right": "\ue014", "Control": "\ue009"}
CENTRE = """(() => {{
  const element = document.querySelector({selector!r});
  element.scrollIntoView({{ block: "center", behavior: "instant" }});
  const {{ x, y, width, height }} = element.getBoundingClientRect();
  return [Math.round(x + width / 2), Math.round(y + height / 2)];
}})()"""


def program(engine: str) -> str | None:
    """Find what starts an engine; a Firefox named by hand is the only one tried. Snaps see no profile of ours."""
    if engine == "webkit":
        return shutil.which("WebKitWebDriver") if shutil.which("Xvfb") else None
    if named := os.environ.get(FIREFOX):
        return shutil.which(named)
    found = [shutil.which(name) for name in ("firefox-esr", "firefox", *map(os.path.expandvars, PLACES))]
    return next((name for name in found if name and "/snap/" not in name), None)


class Tab:
    """What the tests do to a page; ``say`` runs a script of the driver's, ``act`` a list of W3C input sources."""

    def evaluate(self, expression: str, frame: int | None = None):
        """What a JavaScript expression is worth, awaited, in the page or in one of its frames."""
        raise NotImplementedError

    def act(self, sources: list[dict]) -> None:
        """Do what a person does with keyboard and mouse."""
        raise NotImplementedError

    def until(self, truth: str, frame: int | None = None):
        """Wait until an expression holds; asked from outside, as the policy forbids the page to poll."""
        over = time.monotonic() + PATIENCE
        while not (value := self.evaluate(truth, frame)):
            assert time.monotonic() < over, f"{truth}; complaints: {self.complaints()}"
            time.sleep(0.05)
        return value

    def press(self, *keys: str, control: bool = False) -> None:
        """Press keys one after the other: names of KEYS, or characters."""
        strokes = [{"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        if control:
            held = {"value": KEYS["Control"]}
            strokes = [{"type": "keyDown", **held}, *strokes, {"type": "keyUp", **held}]
        self.act([{"type": "key", "id": "keyboard", "actions": strokes}])

    def click(self, selector: str) -> None:
        """Bring an element into view and click its middle."""
        x, y = self.evaluate(CENTRE.format(selector=selector))
        moves = [
            {"type": "pointerMove", "x": x, "y": y},
            *({"type": f"pointer{way}", "button": 0} for way in ("Down", "Up")),
        ]
        self.act([{"type": "pointer", "id": "mouse", "actions": moves}])

    def choose(self, selector: str, value: str, frame: int | None = None) -> None:
        """Set a field at once and let it know."""
        self.evaluate(
            f"(() => {{ const field = document.querySelector({selector!r}); field.value = {value!r};"
            "field.dispatchEvent(new Event('change', { bubbles: true })); })()",
            frame,
        )


class Firefox(Tab):
    """A tab of Firefox, over WebDriver BiDi: JSON over one WebSocket (w3.org/TR/webdriver-bidi)."""

    def __init__(self, channel) -> None:
        self.channel = channel
        self.number, self.complained = 0, []
        self.ask("session.new", capabilities={})
        self.ask("session.subscribe", events=["log.entryAdded"])
        self.context = self.ask("browsingContext.getTree")["contexts"][0]["context"]

    def ask(self, method: str, **params):
        """Send a command and wait for its answer; what the page logs meanwhile is kept."""
        self.number += 1
        self.channel.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while (answer := json.loads(self.channel.recv(PATIENCE))).get("id") != self.number:
            if answer.get("method") == "log.entryAdded" and answer["params"]["level"] == "error":
                self.complained.append(answer["params"]["text"])
        if answer["type"] == "error":
            raise RuntimeError(f"{method}: {answer['error']}: {answer['message']}")
        return answer["result"]

    def go(self, url: str) -> None:
        self.ask("browsingContext.navigate", context=self.context, url=url, wait="complete")

    def evaluate(self, expression: str, frame: int | None = None):
        context = self.context
        if frame is not None:
            context = self.ask("browsingContext.getTree", root=context)["contexts"][0]["children"][frame]["context"]
        script = f"(async () => JSON.stringify([await {expression}]))()"
        answer = self.ask("script.evaluate", expression=script, target={"context": context}, awaitPromise=True)
        if answer["type"] == "exception":
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']['text']}")
        return json.loads(answer["result"]["value"])[0]

    def act(self, sources: list[dict]) -> None:
        self.ask("input.performActions", context=self.context, actions=sources)

    def back(self) -> None:
        self.ask("browsingContext.traverseHistory", context=self.context, delta=-1)

    def size(self, width: int, height: int) -> None:
        self.ask("browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height})

    def picture(self) -> bytes:
        return base64.b64decode(self.ask("browsingContext.captureScreenshot", context=self.context)["data"])

    def complaints(self) -> list[str]:
        """What the console showed in red since the last time."""
        self.ask("session.status")
        told, self.complained = self.complained, []
        return told


class WebKit(Tab):
    """The window of WebKitGTK's MiniBrowser, over classic WebDriver: JSON over HTTP (w3.org/TR/webdriver2)."""

    def __init__(self, address: str, console: Path) -> None:
        self.console, self.read, self.session = console, 0, address + "/session"
        options = {"args": ["--automation", "--enable-write-console-messages-to-stdout=true"]}
        wanted = {"browserName": "MiniBrowser", "webkitgtk:browserOptions": options}
        self.session += "/" + self.ask("POST", "", capabilities={"alwaysMatch": wanted})["sessionId"]

    def ask(self, method: str, path: str, **body):
        """Send a command and wait for its answer."""
        data = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(self.session + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path} {body}: {error.read().decode()}") from None

    def go(self, url: str) -> None:
        self.ask("POST", "/url", url=url)

    def evaluate(self, expression: str, frame: int | None = None):
        script = (
            "const done = arguments[arguments.length - 1];"
            f"(async () => ({{ value: await {expression} }}))().then(done, (error) => done({{ error: String(error) }}))"
        )
        if frame is not None:
            self.ask("POST", "/frame", id=frame)
        try:
            answer = self.ask("POST", "/execute/async", script=script, args=[])
        finally:
            if frame is not None:
                self.ask("POST", "/frame", id=None)
        if "error" in answer:
            raise RuntimeError(f"{expression}: {answer['error']}")
        return answer.get("value")

    def act(self, sources: list[dict]) -> None:
        self.ask("POST", "/actions", actions=sources)

    def back(self) -> None:
        self.ask("POST", "/back")

    def size(self, width: int, height: int) -> None:
        """Give the window a size in which the page has this one, as far as its tool bar lets it."""
        for _ in range(2):
            window = self.ask("GET", "/window/rect")
            inner = self.evaluate("[innerWidth, innerHeight]")
            more = {"width": window["width"] + width - inner[0], "height": window["height"] + height - inner[1]}
            self.ask("POST", "/window/rect", **more)

    def picture(self) -> bytes:
        return base64.b64decode(self.ask("GET", "/screenshot"))

    def complaints(self) -> list[str]:
        """What the console showed in red since the last time."""
        lines = self.console.read_text(errors="replace").splitlines()
        told = [line for line in lines[self.read :] if line.startswith("CONSOLE") and " ERROR " in line]
        self.read = len(lines)
        return told


def listening(port: int) -> bool:
    """Whether a program listens there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def running(command: list[str], **options) -> Iterator[subprocess.Popen]:
    """Run a program while the block does."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()


@contextlib.contextmanager
def firefox(folder: Path) -> Iterator[Firefox]:
    """Run Firefox without a window, with a new profile in ``folder``; it writes there where it listens."""
    from websockets.sync.client import connect

    profile, listens = folder / "profile", folder / "profile" / "WebDriverBiDiServer.json"
    profile.mkdir()
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in PREFERENCES.items()]
    (profile / "user.js").write_text("".join(lines))
    command = [str(program("firefox")), "--headless", "--no-remote", "--profile", str(profile)]
    environment = {**os.environ, "HOME": str(folder)}
    with running([*command, "--remote-debugging-port", "0"], stdout=subprocess.DEVNULL, env=environment) as process:
        over = time.monotonic() + PATIENCE
        while not listens.is_file() or not listens.read_text():
            assert process.poll() is None and time.monotonic() < over, "Firefox does not start"
            time.sleep(0.1)
        where = json.loads(listens.read_text())
        with connect(f"ws://{where['ws_host']}:{where['ws_port']}/session", max_size=None) as channel:
            tab = Firefox(channel)
            tab.size(1280, 900)
            yield tab
            tab.ask("session.end")


@contextlib.contextmanager
def webkit(folder: Path) -> Iterator[WebKit]:
    """Run WebKit's small browser on a display that nobody sees, at home in ``folder``."""
    seen, shown = os.pipe()
    screen = ["Xvfb", "-displayfd", str(shown), "-screen", "0", "1600x1400x24", "-nolisten", "tcp"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    driver = [str(program("webkit")), "--host=127.0.0.1", f"--port={port}"]
    with running(screen, pass_fds=[shown], stdout=subprocess.DEVNULL), (folder / "console").open("wb") as console:
        display = {"DISPLAY": f":{os.read(seen, 16).decode().strip()}", "GDK_BACKEND": "x11"}
        home = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder), "LANG": "C.UTF-8", "LANGUAGE": "en"}
        with running(driver, stdout=console, env={**os.environ, **display, **home}) as process:
            over = time.monotonic() + PATIENCE
            while not listening(port):
                assert process.poll() is None and time.monotonic() < over, "WebKit does not start"
                time.sleep(0.1)
            tab = WebKit(f"http://127.0.0.1:{port}", folder / "console")
            tab.size(1280, 900)
            yield tab
            with contextlib.suppress(Exception):
                tab.ask("DELETE", "")


ENGINES = {"firefox": firefox, "webkit": webkit}

if __name__ == "__main__":  # a look: python3 tests/engines.py firefox|webkit ADDRESS PICTURE [WIDTH HEIGHT]
    import tempfile

    engine, url, picture, width, height = (*sys.argv[1:], "1280", "900")[:5]
    with tempfile.TemporaryDirectory() as place, ENGINES[engine](Path(place)) as page:
        page.size(int(width), int(height))
        page.go(url)
        page.until("document.documentElement.dataset.state === 'ready' && !!document.querySelector('#chart svg')")
        Path(picture).write_bytes(page.picture())
        print(page.evaluate("[innerWidth, innerHeight, document.documentElement.scrollWidth]"), page.complaints())
