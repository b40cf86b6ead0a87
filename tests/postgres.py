"""A PostgreSQL server for tests: in a folder of its own, on a free port, gone at the end.

PostgreSQL refuses to run as root, so under root the server runs as an unprivileged user.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from needed import stop_without

_PLACES = (*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), Path("/usr/local/pgsql/bin"))
_USERS = ("postgres", "nobody")
USER = "weft"


@dataclass(frozen=True)
class Server:
    """A server that can be stopped and started again, as networks and administrators do."""

    programs: Path
    folder: Path
    port: int
    identity: dict[str, Any]

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        options = f"-F -p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c max_connections=40"
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-o", options, "-l", f"{self.folder}/log", "-w", "start")

    def stop(self) -> None:
        """Stop it at once, as a crash would."""
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-m", "immediate", "-w", "stop")

    def create(self, database: str) -> str:
        """Make an empty database and return its address."""
        self.run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, database)
        return self.url(database)

    def run(self, program: str, *arguments: str) -> None:
        # The server keeps its parent's outputs open: they must not be pipes that somebody waits for.
        with (self.folder / "commands.log").open("ab") as log:
            done = subprocess.run(
                [str(self.programs / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=False,
                cwd=self.folder,
                **self.identity,
            )
        if done.returncode:
            reported = "\n".join(
                file.read_text(errors="replace")[-2000:]
                for file in (self.folder / "commands.log", self.folder / "log")
                if file.exists()
            )
            pytest.fail(f"{program} failed:\n{reported}", pytrace=False)


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs, or None."""
    for place in _PLACES:
        if (place / "initdb").exists() and (place / "pg_ctl").exists():
            return place
    found = shutil.which("initdb")
    return Path(found).parent if found else None


@contextmanager
def running_server() -> Iterator[Server]:
    """Yield a fresh server; skip where there is none to start, which in CI is a failure."""
    place = programs()
    if place is None:
        stop_without("these tests need the programs of PostgreSQL: initdb, pg_ctl")
    # Not pytest's own folder: the path of a socket has room for a hundred characters.
    folder = Path(tempfile.mkdtemp(prefix="weft-pg-"))
    server = Server(place, folder, _free_port(), _identity(folder))
    try:
        server.run("initdb", "-D", f"{folder}/data", "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync")
        server.start()
        try:
            yield server
        finally:
            if (folder / "data" / "postmaster.pid").exists():
                server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _identity(folder: Path) -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    known = {user.pw_name: user for user in pwd.getpwall()}
    user = next(known[name] for name in _USERS if name in known)
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
