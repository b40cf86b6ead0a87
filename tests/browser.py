"""A headless Chromium for tests: open a page, run a script in it, see what it requested, take a picture.

It speaks the DevTools protocol through a pipe, so that no package and no port is needed.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from needed import stop_without

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 60


def find_browser() -> str:
    """Return the program of the browser; skip where there is none, which is a failure in CI."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        stop_without("this test needs a browser: `apt-get install chromium` installs one on Debian")
    return found


class Browser:
    """One window of a running browser."""

    def __init__(self, write: int, read: int) -> None:
        self._to = os.fdopen(write, "wb", buffering=0)
        self._from = os.fdopen(read, "rb")
        self._calls = 0
        self._session: str | None = None
        self.requested: list[str] = []
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol and return its result; events that arrive before are kept."""
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._calls:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def _read(self) -> Any:
        text = bytearray()
        while not text.endswith(b"\0"):
            byte = self._from.read(1)
            assert byte, "the browser has ended"
            text += byte
        message = json.loads(text[:-1])
        if message.get("method") == "Network.requestWillBeSent":
            self.requested.append(message["params"]["request"]["url"])
        elif message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(message["params"]["exceptionDetails"].get("exception", {}).get("description", "error"))
        return message

    def close(self) -> None:
        """Close the pipe."""
        self._to.close()
        self._from.close()

    def resize(self, width: int, height: int) -> None:
        """Give the window a size, in pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, address: str) -> None:
        """Open a page and wait until it is loaded."""
        self.call("Page.navigate", url=address)
        self.wait(f"document.readyState == 'complete' && location.href == {json.dumps(address)}")

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str) -> Any:
        """Wait until an expression is true in the page and return it."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if value := self.evaluate(condition):
                return value
            time.sleep(0.05)
        raise AssertionError(f"never true: {condition}")

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def take_picture(self, file: Path) -> None:
        """Write what the window shows to a PNG file."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def open_browser(profile: Path) -> Iterator[Browser]:
    """Start a browser with an empty profile and end it afterwards."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
    # The protocol's numbers for the pipe are 3 and 4, which the shell gives to the pipe's ends.
    run = f'exec "$@" 3<&{to_read} 4>&{from_write}'
    process = subprocess.Popen(
        ["bash", "-c", run, "browser", find_browser(), *flags, "--remote-debugging-pipe", f"--user-data-dir={profile}"],
        pass_fds=(to_read, from_write),
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(from_write)
    try:
        with closing(Browser(to_write, from_read)) as browser:
            yield browser
    finally:
        process.kill()
        process.wait()
