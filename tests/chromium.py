"""A headless Chromium, spoken to over two pipes in the DevTools protocol: no driver, no port."""

import base64
import json
import os
import shutil
import subprocess
from fcntl import F_DUPFD_CLOEXEC, fcntl
from importlib.util import find_spec
from pathlib import Path
from select import select
from time import monotonic
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((found for name in BROWSERS if (found := shutil.which(name))), None)
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip


def _pipe() -> list[int]:
    """Both ends, out of the way of the descriptors that the browser wants."""
    low = os.pipe()
    high = [fcntl(end, F_DUPFD_CLOEXEC, 10) for end in low]
    for end in low:
        os.close(end)
    return high


class Chromium:
    """One page of a browser, with everything that it asked for and complained of."""

    patience = 30.0  # seconds for an answer

    def __init__(self, profile: Path) -> None:
        assert BROWSER is not None
        its_in, self.out = _pipe()
        self.into, its_out = _pipe()
        # the browser reads from descriptor 3 and writes to 4
        script = f'exec "$@" 3<&{its_in} 4>&{its_out} {its_in}<&- {its_out}>&-'
        command = ["bash", "-c", script, "bash", BROWSER, *OPTIONS, f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(
            [*command, "about:blank"],
            pass_fds=(its_in, its_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(its_in)
        os.close(its_out)
        self.number, self.left, self.session = 0, b"", None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for room in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{room}.enable")

    def close(self) -> None:
        """End the browser, and wait for it."""
        self.session = None
        try:
            self.send("Browser.close")
            self.process.wait(10)
        except (OSError, AssertionError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)

    def send(self, method: str, **fields: Any) -> dict[str, Any]:
        """Ask for something, and wait for the answer."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": fields}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while (heard := self._hear()).get("id") != self.number:
            self._note(heard)
        assert "error" not in heard, (method, heard["error"])
        return heard["result"]

    def wait_for(self, event: str) -> None:
        """Until something has happened."""
        while (heard := self._hear()).get("method") != event:
            self._note(heard)

    def open(self, path: Path, *, width: int = 1440, height: int = 900, dark: bool = False) -> None:
        """Load a page from disk in a window of this size."""
        self.look(dark=dark)
        self.resize(width, height)
        self.visit(path.as_uri())

    def visit(self, address: str) -> None:
        """Load a page by its address."""
        self.requests, self.complaints = [], []
        self.send("Page.navigate", url=address)
        self.wait_for("Page.loadEventFired")

    def press(self, key: str, *, loads: bool = False) -> None:
        """Press a key; and wait for the page that it leads to."""
        fields = {"key": key, "windowsVirtualKeyCode": {"Enter": 13, "ArrowRight": 39}.get(key, 0)}
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", **fields, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **fields)
        if loads:
            self.wait_for("Page.loadEventFired")

    def resize(self, width: int, height: int = 900) -> None:
        """Make the window as wide as a telephone, or as a desk."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def look(self, *, dark: bool = False, medium: str = "screen") -> None:
        """Light, dark, on paper."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media=medium, features=[scheme])

    def value(self, expression: str) -> Any:
        """What an expression gives in the page; a promise is waited for."""
        found = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def point(self, expression: str, *, click: bool = False) -> None:
        """Move the mouse to the middle of an element, as a hand would; and click there."""
        self.value(f"({expression}).scrollIntoView({{block: 'center'}})")
        box = f"JSON.stringify(({expression}).getBoundingClientRect())"
        found = json.loads(self.value(box))
        place = {"x": found["x"] + found["width"] / 2, "y": found["y"] + found["height"] / 2}
        self.send("Input.dispatchMouseEvent", type="mouseMoved", **place)
        if click:
            for kind in ("mousePressed", "mouseReleased"):
                pressed = {"type": kind, "button": "left", "clickCount": 1}
                self.send("Input.dispatchMouseEvent", **pressed, **place)

    def barriers(self) -> list[str]:
        """What axe-core finds that keeps people from using the page."""
        found = find_spec("axe_core_python")
        if found is None or found.origin is None:
            pytest.skip("axe-core-python is not installed")
        source = Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")
        self.send("Runtime.evaluate", expression=source)
        assert self.value("axe.run(document).then((found) => found.passes.length)") > 5
        return self.value(
            """axe.run(document, { resultTypes: ["violations"] }).then((found) => found.violations
              .map((one) => `${one.impact} ${one.id}: ${one.nodes[0].html}`))"""
        )

    def write(self, text: str) -> None:
        """Type into what has the focus."""
        self.send("Input.insertText", text=text)

    def picture(self, *, whole: bool = True) -> bytes:
        """The whole page as PNG, or what the window shows of it."""
        found = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(found["data"])

    def paper(self) -> bytes:
        """The page as it would be printed, in PDF."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])

    def _hear(self) -> dict[str, Any]:
        until = monotonic() + self.patience
        while b"\0" not in self.left:
            ready, _, _ = select([self.into], [], [], max(until - monotonic(), 0))
            assert ready, "the browser does not answer"
            piece = os.read(self.into, 1 << 20)
            assert piece, "the browser has gone"
            self.left += piece
        message, _, self.left = self.left.partition(b"\0")
        return json.loads(message)

    def _note(self, heard: dict[str, Any]) -> None:
        kind, fields = heard.get("method"), heard.get("params", {})
        if kind == "Network.requestWillBeSent":
            self.requests.append(fields["request"]["url"])
        elif kind == "Runtime.exceptionThrown":
            self.complaints.append(fields["exceptionDetails"]["text"])
        elif kind == "Log.entryAdded" and fields["entry"]["level"] in ("error", "warning"):
            self.complaints.append(fields["entry"]["text"])
        elif kind == "Runtime.consoleAPICalled" and fields["type"] in ("error", "warning"):
            self.complaints.append(str(fields["args"]))
