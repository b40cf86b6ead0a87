"""Connections to the database of a store: its address, its settings, its errors."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError as BadAddress
from sqlalchemy.exc import DBAPIError, IntegrityError, NoSuchModuleError

from weft.errors import StoreError
from weft.redaction import is_secret_name, redact

T = TypeVar("T")
WRITE: Mapping[str, Any] = {"weft_write": True}
PATIENCE = 10.0
"""Seconds for which work is repeated while the database cannot be reached."""
_BUSY_MS = 10_000
_EXAMPLES = "write sqlite:///.weft/weft.db, or postgresql://user@host/database"
_FROM_ENVIRONMENT = "env:"
_PORTS = 65_536
_SQLITE_OPTIONS = frozenset({"cache", "cached_statements", "immutable", "mode", "nolock", "timeout", "uri", "vfs"})
# SQLite has names of errors instead of states.
_LOCKED = ("SQLITE_BUSY", "SQLITE_LOCKED")
_READ_ONLY = ("42501", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")
_DISK_FULL = ("53100", "SQLITE_FULL")
# Connection lost, server going down or starting, out of connections, serialization, deadlock, lock wait.
_PASSING_STATES = ("08", "57P", "53300", "40001", "40P01", "55P03")
# A refused connection has no state, only a message; these refusals are temporary.
_REFUSED = "FATAL:"
_PASSING_REFUSALS = ("starting up", "shutting down", "recovery mode", "too many clients", "connection slots")
_BROKEN_STATES = ("42P01", "42703", "42P07", "SQLITE_CORRUPT", "SQLITE_NOTADB")
# SQLite reports them as SQLITE_ERROR, like every mistake in a statement.
_BROKEN_WORDS = ("no such table", "no such column", "has no column")


@dataclass(frozen=True, slots=True)
class Database:
    """A database that holds a store; every piece of work is one transaction.

    A dropped connection is retried for `patience` seconds, so the work must be idempotent: the first attempt may
    have been committed before the connection broke.
    """

    engine: Engine
    patience: float = PATIENCE
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    @property
    def address(self) -> str:
        """The address without its password, whichever part holds it."""
        url = self.engine.url
        plain = url.set(drivername=url.drivername.partition("+")[0])
        return redact(plain.render_as_string(hide_password=True))

    @property
    def _secrets(self) -> tuple[str, ...]:
        url = self.engine.url
        values = [v for k, parts in url.normalized_query.items() if is_secret_name(k) for v in parts]
        return tuple(filter(None, (str(url.password or ""), *values)))

    def read(self, work: Callable[[Connection], T]) -> T:
        """Return what `work` reads."""
        return self._attempt(work, {})

    def write(self, work: Callable[[Connection], T]) -> T:
        """Return the result of `work` after everything it wrote is committed."""
        return self._attempt(work, WRITE)

    def _attempt(self, work: Callable[[Connection], T], options: Mapping[str, Any]) -> T:
        # Each pause is three times the one before: a deadlock is over at once, a restart takes seconds.
        started, pause = time.monotonic(), self.patience / 20
        while True:
            try:
                with self.engine.connect().execution_options(**options) as connection, connection.begin():
                    return work(connection)
            except DBAPIError as cause:
                spent = time.monotonic() - started
                if not _is_passing(cause) or spent + pause > self.patience:
                    raise self.explain(cause) from cause
            self.sleep(pause)
            pause *= 3

    def explain(self, cause: DBAPIError) -> StoreError:
        """Return the error that a failure of the database means to a user."""
        message = str(cause.orig).strip().splitlines()[0] if str(cause.orig).strip() else type(cause.orig).__name__
        message = redact(message, self._secrets)
        state = _state(cause)
        if isinstance(cause, IntegrityError):
            return StoreError(
                f"the store {self.address} rejects the write: {message}",
                code="W1602",
                help="another program wrote into its tables, or they were changed by hand",
            )
        if state.startswith(_BROKEN_STATES) or any(word in message for word in _BROKEN_WORDS):
            return StoreError(
                f"the store {self.address} has missing or damaged tables: {message}",
                code="W1602",
                help="restore it from a copy, or name another store in weft.yml",
            )
        return StoreError(
            f"the store {self.address} cannot be reached: {message}", code="W1601", help=_remedy(message, state)
        )

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _state(cause: DBAPIError) -> str:
    """Return the SQLSTATE of an error, the name that SQLite has for it, or an empty string."""
    return getattr(cause.orig, "sqlstate", None) or getattr(cause.orig, "sqlite_errorname", None) or ""


def _is_passing(cause: DBAPIError) -> bool:
    if cause.connection_invalidated:
        return True
    state = _state(cause)
    if isinstance(cause.orig, sqlite3.Error):
        return state.startswith(_LOCKED)
    if state:
        return state.startswith(_PASSING_STATES)
    # Without a state the connection itself failed; only a server that answered can refuse for good.
    message = str(cause.orig)
    return _REFUSED not in message or any(word in message for word in _PASSING_REFUSALS)


def _remedy(message: str, state: str) -> str:
    if state.startswith(_LOCKED):
        return "another process has been writing to it for a long time: try again when it has ended"
    if state.startswith(_READ_ONLY):
        return "give the user of this process write permission, or name another store in weft.yml"
    if state.startswith(_DISK_FULL):
        return "free space on its disk"
    if _REFUSED in message and "database" in message and "does not exist" in message:
        return "create the database first: createdb"
    if _REFUSED in message and not any(word in message for word in _PASSING_REFUSALS):
        return "check the user and the password (PGPASSWORD, ~/.pgpass, or store: env:NAME in weft.yml)"
    return "check that the server runs and that `store` in weft.yml names it"


def address_of(url: str, root: Path) -> URL:
    """Return where a store is; relative SQLite files are below the workspace, ``env:NAME`` is looked up."""
    text = url.strip()
    if text.startswith(_FROM_ENVIRONMENT):
        name = text.removeprefix(_FROM_ENVIRONMENT)
        text = os.environ.get(name, "")
        if not text:
            raise StoreError(
                f"the store is named by the variable {name!r}, which is not set", help=f"export {name}=..."
            )
    try:
        address = make_url(text)
    except (BadAddress, ValueError):
        # The address may hold a password: neither the message nor the cause repeats it.
        raise StoreError("the store's address is not a database URL", help=_EXAMPLES) from None
    if address.port is not None and not 0 < address.port < _PORTS:
        raise StoreError(f"the store's address has the port {address.port}", help="ports are 1 to 65535")
    kind = address.drivername.partition("+")[0]
    if kind in ("postgresql", "postgres"):
        return address.set(drivername="postgresql+psycopg")
    if kind != "sqlite":
        raise StoreError(f"unsupported store {kind!r}", help=_EXAMPLES)
    if unknown := sorted(set(address.query) - _SQLITE_OPTIONS):
        raise StoreError(f"a store in SQLite has no option {unknown[0]!r}", help="leave it out of the address")
    if address.database in (None, "", ":memory:"):
        raise StoreError("a store in memory would forget every run", help=_EXAMPLES)
    return address.set(drivername="sqlite", database=str(root / str(address.database)))


def engine_of(address: URL) -> Engine:
    """Return an engine with the settings of the store: short waits, real transactions, foreign keys."""
    try:
        if address.drivername == "sqlite":
            return _sqlite(address)
        arguments: dict[str, Any] = {"connect_timeout": 5}
        if "options" not in address.query:
            arguments["options"] = f"-c lock_timeout={_BUSY_MS}"
        # A pooled connection may be dead after a restart of the server: it is tested before it is used.
        return create_engine(address, pool_pre_ping=True, connect_args=arguments)
    except (ImportError, NoSuchModuleError) as cause:
        raise StoreError(
            "a store in PostgreSQL needs the package psycopg", help='pip install "weft[postgres]"'
        ) from cause


def _sqlite(address: URL) -> Engine:
    engine = create_engine(address)

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _record: object) -> None:
        # Transactions begin below, with the lock they need; the driver must not begin its own.
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        connection.execute("PRAGMA foreign_keys = ON")
        # With a write-ahead log readers do not wait for a writer: `weft runs` answers while a run is recorded.
        connection.execute("PRAGMA journal_mode = WAL")

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        # A writer takes its lock at once: a reader that turns into a writer cannot wait for another.
        writes = connection.get_execution_options().get("weft_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
