"""Publishing in a database: from stage table to target in the caller's transaction, without Spark.

::

    BEGIN
    DELETE FROM target WHERE _period IN (...)          replace_period
    INSERT INTO target (...) SELECT ... FROM stage     a rerun that appends: EXCEPT ALL what is there
    DROP TABLE stage
    COMMIT                                             by the caller, once for all outputs of the server

A stage table that is gone was published before: doing it again changes nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from weft.errors import ResolutionError, RunError
from weft.io.datasource import PERIOD, DataSource, WriteMode, credentials_of
from weft.io.options import jdbc_url
from weft.redaction import redact

_DISK_FULL = "53100"
# Parameters of a JDBC url that libpq knows too; others, such as `currentSchema`, are those of the Java driver.
_PASSED_ON = ("sslmode", "sslrootcert", "sslcert", "sslkey", "options", "user", "password")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSwap:
    """A staged output of a database on its way to its target.

    `stage` is the quoted name that `stage_jdbc` gave; `periods` are the identifiers that a
    ``replace_period`` replaces.
    """

    stage: str
    schema: str
    table: str
    columns: tuple[str, ...]
    mode: WriteMode
    periods: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    again: bool = False
    """Whether rows that are appended were added before, by the run that this one repeats."""

    @property
    def target(self) -> str:
        """The quoted name of the target."""
        return quoted(self.schema, self.table)


def quoted(*names: str) -> str:
    """Return names as one identifier of SQL; empty ones are left out.

    >>> quoted("gl", 'a"b'), quoted("", "t")
    ('"gl"."a""b"', '"t"')
    """
    return ".".join('"' + name.replace('"', '""') + '"' for name in names if name)


def stage_name(run_id: str, seq: int) -> str:
    """Return the name of the stage table of an output."""
    return f"weft_stage_{run_id.replace('-', '')}_{seq}"


def connect(source: DataSource, root: Path) -> Any:
    """Return a connection to the database of a datasource; the caller commits and closes it."""
    try:
        psycopg = importlib.import_module("psycopg")
    except ImportError as cause:
        raise ResolutionError(
            "tables of PostgreSQL are published with the library 'psycopg', which is not installed",
            code="W1314",
            help="pip install 'weft[postgres]'",
        ) from cause
    at = urlsplit(jdbc_url(source).removeprefix("jdbc:"))
    if at.scheme != "postgresql":
        raise ResolutionError(
            f"outputs go to databases of PostgreSQL, and datasource {source.id!r} has the url {jdbc_url(source)!r}",
            code="W1318",
            help="write jdbc:postgresql://host:5432/database, or write files",
            at=source.at.of("options.url"),
        )
    secret = credentials_of(source, root)
    query = dict(parse_qsl(at.query))
    options = {k: v for k, v in query.items() if k in _PASSED_ON}
    if "currentSchema" in query and "options" not in options:
        # Spark's driver stages in that schema: the tables must be found where it puts them.
        options["options"] = f"-c search_path={query['currentSchema']}"
    options |= {k: v for k, v in (("user", secret.user), ("password", secret.password)) if v}
    try:
        return psycopg.connect(
            host=at.hostname or "localhost", port=at.port or 5432, dbname=unquote(at.path.lstrip("/")), **options
        )
    except psycopg.Error as cause:
        raise RunError(
            f"the database of datasource {source.id!r} cannot be reached: "
            f"{redact(str(cause).strip(), (secret.password,))}",
            code="W1509",
            help="check the url and the credential_ref of the datasource, then resume the run",
        ) from cause


def table_exists(connection: Any, name: str) -> bool:
    """Whether there is a table of that quoted name."""
    row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (name,)).fetchone()
    return bool(row[0])


def has_rows(connection: Any, swap: TableSwap) -> bool:
    """Whether the target has rows of the periods; without a period column, any rows."""
    if not table_exists(connection, swap.target):
        return False
    by_period = swap.periods and PERIOD.name in swap.columns
    where = f" WHERE {quoted(PERIOD.name)} = ANY(%s)" if by_period else ""
    values = (list(swap.periods),) if by_period else ()
    row = connection.execute(f"SELECT EXISTS (SELECT 1 FROM {swap.target}{where})", values).fetchone()  # noqa: S608
    return bool(row[0])


def publish(connection: Any, swap: TableSwap, *, added: bool = False) -> bool:
    """Move staged rows to their target inside the open transaction; False when that was done before.

    With `added` an earlier attempt of the run has appended them: then the stage is only dropped.
    """
    with _answered(swap):
        if added:
            drop_stage(connection, swap.stage)
        if added or not table_exists(connection, swap.stage):
            return False
        # Two publishers of one table wait for each other instead of failing half-way.
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (swap.target,))
        if swap.mode == "fail_if_exists" and has_rows(connection, swap):
            raise RunError(
                f"table {swap.target} already has rows of {', '.join(swap.periods)}",
                code="W1507",
                help="delete them, or write with `mode: replace_period`",
            )
        _move(connection, swap)
    return True


@contextmanager
def _answered(swap: TableSwap) -> Iterator[None]:
    """Turn errors of the database into errors of Weft."""
    try:
        yield
    except importlib.import_module("psycopg").Error as cause:
        if cause.sqlstate == _DISK_FULL:
            raise RunError(
                f"no space for table {swap.target} in its database: {str(cause).strip()}",
                code="W1508",
                help="free space on the disk of the database, then resume the run",
            ) from cause
        raise RunError(
            f"the rows staged in {swap.stage} cannot be written to table {swap.target}: {str(cause).strip()}",
            code="W1509",
            help="check the columns of the table, then resume the run",
        ) from cause


def _move(connection: Any, swap: TableSwap) -> None:
    columns = ", ".join(map(quoted, swap.columns))
    # LIKE copies names and types, neither keys nor defaults; a target that exists keeps its own.
    connection.execute(f"CREATE TABLE IF NOT EXISTS {swap.target} (LIKE {swap.stage})")
    if swap.mode == "replace_period":
        connection.execute(
            f"DELETE FROM {swap.target} WHERE {quoted(PERIOD.name)} = ANY(%s)",  # noqa: S608
            (list(swap.periods),),
        )
    elif swap.mode == "merge":
        connection.execute(f"DELETE FROM {swap.target} t USING {swap.stage} s WHERE {_same(swap.key)}")  # noqa: S608
    source = f"SELECT {columns} FROM {swap.stage}"  # noqa: S608
    if swap.mode == "append" and swap.again:
        source = _missing(connection, swap, columns)
    connection.execute(f"INSERT INTO {swap.target} ({columns}) {source}")
    connection.execute(f"DROP TABLE {swap.stage}")


def _missing(connection: Any, swap: TableSwap, columns: str) -> str:
    """Return a query for the staged rows that the target does not have, each as often as it is missing."""
    # The rows of a rerun are those of the run it repeats, so what is there stays and only the rest is added.  They
    # are compared in the types of the target, which may round.
    rows = quoted("weft_again")
    connection.execute(f"DROP TABLE IF EXISTS pg_temp.{rows}")
    connection.execute(
        f"CREATE TEMPORARY TABLE {rows} ON COMMIT DROP AS SELECT {columns} FROM {swap.target} WITH NO DATA"  # noqa: S608
    )
    connection.execute(f"INSERT INTO {rows} ({columns}) SELECT {columns} FROM {swap.stage}")  # noqa: S608
    return f"SELECT {columns} FROM {rows} EXCEPT ALL SELECT {columns} FROM {swap.target}"  # noqa: S608


def is_out_of_reach(problem: BaseException) -> bool:
    """Whether an error came from a server that did not answer, so that the outcome is unknown."""
    # An error that a server reported has a state; without one the connection was lost.
    cause = problem.__cause__
    return type(cause).__module__.startswith("psycopg") and getattr(cause, "sqlstate", None) is None


def _same(key: Sequence[str]) -> str:
    # IS NOT DISTINCT FROM: NULL is a key like any other, as in a merge of files.
    return " AND ".join(f"t.{quoted(k)} IS NOT DISTINCT FROM s.{quoted(k)}" for k in key)


def drop_stage(connection: Any, stage: str) -> None:
    """Remove a stage table that nobody publishes any more."""
    connection.execute(f"DROP TABLE IF EXISTS {stage}")
