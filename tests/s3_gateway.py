"""An S3 server for tests: Versity's gateway over a folder, which can be killed and started again on its port.

The program is built by Go once and stays in ``~/.cache/weft``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from needed import stop_without

VERSION = "1.8.0"
START_SECONDS = 60
BUCKET = "lake"
USER, PASSWORD = "weft-tests", "not-a-secret-of-anyone"
_MODULE = f"github.com/versity/versitygw/cmd/versitygw@v{VERSION}"
_GO = (Path("/usr/local/go/bin/go"), Path("/usr/lib/go/bin/go"))


class NoGatewayError(Exception):
    """No S3 server can run here; the message says what is missing."""


@dataclass
class Gateway:
    """A server over `folder`, whose sub-folders are its buckets."""

    program: Path
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which Weft and Spark reach it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": USER,
            "AWS_SECRET_ACCESS_KEY": PASSWORD,
            "AWS_REGION": "us-east-1",
        }

    def create_bucket(self, name: str) -> None:
        (self.folder / "buckets" / name).mkdir(parents=True)

    def start(self) -> None:
        log = self.folder / "log"
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [self.program, "--port", f"127.0.0.1:{self.port}", "--quiet", "posix", *self._metadata(), "buckets"],
                cwd=self.folder,
                env=os.environ | {"ROOT_ACCESS_KEY": USER, "ROOT_SECRET_KEY": PASSWORD},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        raise NoGatewayError(f"the S3 gateway did not start; its log ends:\n{log.read_text(errors='replace')[-2000:]}")

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(30)
            self.process = None

    def _metadata(self) -> list[str]:
        """Return where it keeps what it knows of objects: file systems without extended attributes need a folder."""
        try:
            os.setxattr(self.folder, "user.weft", b"x")
        except (OSError, AttributeError):
            (self.folder / "metadata").mkdir(exist_ok=True)
            return ["--sidecar", "metadata"]
        return []


def gateway_program() -> Path:
    """Return the program, built when it is not there."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    place = Path(base, "weft", f"versitygw-{VERSION}", "versitygw")
    if place.exists():
        return place
    go = shutil.which("go") or next((str(path) for path in _GO if path.exists()), None)
    if go is None:
        raise NoGatewayError(f"an S3 gateway needs {place}, and there is no go to build it")
    place.parent.parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(prefix=".tmp-versitygw-", dir=place.parent.parent))
    try:
        command = [go, "install", "-ldflags=-s -w", _MODULE]
        built = subprocess.run(
            command, env=os.environ | {"GOBIN": str(stage)}, capture_output=True, text=True, check=False
        )
        if built.returncode:
            raise NoGatewayError(f"Go could not build the S3 gateway: {built.stderr[-2000:]}")
        stage.chmod(0o755)
        with contextlib.suppress(OSError):  # another process was faster
            stage.rename(place.parent)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return place


@contextmanager
def running_gateway() -> Iterator[Gateway]:
    """Yield a fresh gateway with an empty bucket; skip where there is none to start, which in CI is a failure."""
    try:
        program = gateway_program()
    except NoGatewayError as cause:
        stop_without(str(cause))
    folder = Path(tempfile.mkdtemp(prefix="weft-s3-"))
    gateway = Gateway(program, folder, free_port())
    try:
        gateway.create_bucket(BUCKET)
        gateway.start()
        yield gateway
    finally:
        gateway.kill()
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":  # fetches it
    try:
        gateway_program()
    except NoGatewayError as problem:
        sys.exit(str(problem))
