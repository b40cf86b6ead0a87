"""An Apache Kafka broker for tests and for ``make kafka``: one process in KRaft mode, gone at the end.

Its jars come by Maven once and stay in ``~/.cache/weft``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from weft.streams.run.connectors import fetch_artifacts, find_connector, find_installed

VERSION = "4.1.0"
START_SECONDS = 120
_ARTIFACT = ("org.apache.kafka", "kafka_2.13", VERSION)
_CLUSTER = "4L6g3nShT-eMCtK--X86sw"
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{control}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
num.partitions=2
"""


class NoBrokerError(Exception):
    """No broker can run here; the message says what is missing."""


def cache() -> Path:
    """Return the folder that keeps the jars of the broker."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "weft", f"kafka-broker-{VERSION}")


def broker_jars() -> Path:
    """Return the folder of the broker's jars, fetched when they are not there."""
    place = cache()
    if place.is_dir():
        return place
    program = shutil.which("mvn")
    if program is None:
        raise NoBrokerError(f"a Kafka broker needs its jars in {place}, and there is no mvn to fetch them")
    place.parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(prefix=".tmp-kafka-", dir=place.parent))
    try:
        done, output = fetch_artifacts(program, (_ARTIFACT,), stage)
        if not done:
            output = next((line for line in output.splitlines() if line.startswith("[ERROR]")), "it says nothing")
            raise NoBrokerError(f"Maven could not fetch the Kafka broker: {output}")
        stage.chmod(0o755)
        stage.rename(place)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return place


def problem() -> str | None:
    """Return a sentence that says why no test can talk to Kafka here, or None."""
    if shutil.which("java") is None:
        return "a Kafka broker needs java"
    if not find_installed(find_connector("kafka")).version:
        return "Spark's Kafka connector is not installed: weft connectors install kafka"
    try:
        broker_jars()
    except NoBrokerError as cause:
        return str(cause)
    return None


@contextmanager
def running_broker(port: int | None = None, folder: Path | None = None) -> Iterator[str]:
    """Yield the address of a fresh broker."""
    jars = broker_jars()
    made = Path(tempfile.mkdtemp(prefix="weft-kafka-", dir=folder))
    port, control = port or _free_port(), _free_port()
    settings = made / "server.properties"
    settings.write_text(_SETTINGS.format(port=port, control=control, folder=made))
    java = ["java", "-Xmx256m", "-cp", f"{jars}/*"]
    log = made / "log"
    try:
        with log.open("wb") as out:
            command = [*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(settings)]
            formatted = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False)
            if formatted.returncode:
                _fell(log)
            process = subprocess.Popen(
                [*java, "kafka.Kafka", str(settings)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            _wait_for(port, process, log)
            yield f"127.0.0.1:{port}"
        finally:
            _stop(process)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    _fell(log)


def _fell(log: Path) -> NoReturn:
    last = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    raise NoBrokerError(f"the Kafka broker did not start; its log ends:\n{last}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(30)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> None:
    """Run a broker on port 9092 until Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with running_broker(9092) as address:
            sys.stdout.write(f"a Kafka broker listens on {address}; Ctrl-C ends it and forgets its messages\n")
            sys.stdout.flush()
            signal.pause()
    except KeyboardInterrupt:
        sys.stdout.write("\n")
    except NoBrokerError as cause:
        sys.exit(str(cause))


if __name__ == "__main__":
    main()
