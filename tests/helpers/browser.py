"""A real headless browser, spoken to over a pair of pipes (Chromium's DevTools protocol): no driver, no port."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LIMIT = 120.0
_QUIET = "background-networking component-update sync quic gpu dev-shm-usage"
_FLAGS = ["--headless", "--no-sandbox", "--no-first-run", "--remote-debugging-pipe"]
_FLAGS += [f"--disable-{what}" for what in _QUIET.split()]


class Browser:
    """One page. `requests` are the addresses it asked for, `complaints` what it wrote to its console."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._buffer, self._count, self._session = b"", 0, ""
        self._loaded = 0
        self.requests: list[str] = []
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def open(self, page: Path) -> None:
        """Waits until everything on the page is there."""
        loaded = self._loaded
        self.call("Page.navigate", url=page.resolve().as_uri())
        while self._loaded == loaded:
            self._next()

    def evaluate(self, expression: str) -> Any:
        outcome = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in outcome, outcome["exceptionDetails"]
        return outcome["result"].get("value")

    def screenshot(self, target: Path, width: int = 1280, height: int = 0, dark: bool = False) -> None:
        """The whole page, or its first `height` pixels."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", height=height or 1000, **size)
        height = height or int(self.evaluate("document.documentElement.scrollHeight"))
        self.call("Emulation.setDeviceMetricsOverride", height=height, **size)
        picture = self.call("Page.captureScreenshot", format="png")["data"]
        target.write_bytes(base64.b64decode(picture))

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + LIMIT
        while b"\0" not in self._buffer:
            assert time.monotonic() < end, f"the browser did not answer within {LIMIT} s"
            with contextlib.suppress(BlockingIOError):
                self._buffer += os.read(self._answers, 1 << 20)
                continue
            time.sleep(0.005)
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, about: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self._loaded += 1
        elif event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(str(about["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled":
            self.complaints.append(str(about["args"]))
        elif event == "Log.entryAdded":
            self.complaints.append(about["entry"]["text"])


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    assert CHROMIUM
    for_it, commands = os.pipe()
    answers, from_it = os.pipe()
    os.set_blocking(answers, False)

    def pipes() -> None:  # Chromium reads from 3 and writes to 4
        spare = [os.dup(for_it), os.dup(from_it)]
        os.dup2(spare[0], 3)
        os.dup2(spare[1], 4)

    with tempfile.TemporaryDirectory(prefix="llcg-browser-", ignore_cleanup_errors=True) as profile:
        command = [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}"]
        log = (Path(profile) / "stderr").open("w")
        process = subprocess.Popen(command, close_fds=False, preexec_fn=pipes, stdout=log, stderr=log)
        os.close(for_it)
        os.close(from_it)
        try:
            yield Browser(commands, answers)
        finally:
            os.close(commands)  # it ends with its pipe
            os.close(answers)
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            log.close()
