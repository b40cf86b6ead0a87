"""Outputs that are tables of a real PostgreSQL: published together, once, and never torn apart by a lost connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engine_data import project_text, sample_workspace
from postgres import Server, running_server
from staged_runs import StagedRun, opened, staged_run
from weft.errors import RunError
from weft.io.spark import database as sink
from weft.io.spark.database import TableSwap, is_out_of_reach, publish, quoted, stage_name
from weft.pipelines.run.moving import Move
from weft.pipelines.run.publish import recover
from weft.pipelines.run.tables import Tables
from weft.pipelines.store.records import OutputRecord
from weft.pipelines.store.writer import Store

COLUMNS = ("journal_id", "amount_local")
FILES = "out/files/period=2026-01"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as found:
        yield found


@pytest.fixture
def database(server: Server) -> Iterator[Any]:
    with psycopg.connect(server.url(), autocommit=True) as found:
        found.execute("DROP SCHEMA IF EXISTS public CASCADE")
        found.execute("DROP SCHEMA IF EXISTS fin CASCADE")
        found.execute("CREATE SCHEMA public")
        found.execute("CREATE SCHEMA fin")
        yield found


def workspace(
    folder: Path, server: Server, query: str = "", more: str = "mode: append", *, second: bool = False
) -> Path:
    url = "jdbc:" + server.url().replace("weft@", "") + f"?user=weft{query}"
    operations = f"""\
- {{seq: 20, name: Table, type: output, arguments: {{destination: {{datasource_id: pg, table: gl}}, {more}, columns: [journal_id, amount_local]}}}}
- {{seq: 30, name: Files, type: output, arguments: {{destination: {{path: out/files}}, columns: [journal_id]}}}}
"""
    pg = f'datasource: {{id: pg, name: pg, type: jdbc, options: {{url: "{url}"}}}}\n'
    changes = {"datasources/pg.yml": pg, "datasources/pg2.yml": pg.replace("pg,", "pg2,")}
    if second:
        first = operations.splitlines(keepends=True)[0]
        operations += first.replace("20, name: Table", "40, name: Other").replace("pg, table: gl", "pg2, table: other")
    return sample_workspace(folder, {"projects/fx_reporting.yml": project_text([operations]), **changes})


def staged(root: Path, store: Store, database: Any, *rows: tuple[str, str], number: int = 1) -> StagedRun:
    """Begin a run, stage rows in the database as Spark does, and a file."""
    run = staged_run(root, store, f"run {number}", number=number)
    moves = tuple(replace(move, output=_in_table(move.output)) for move in run.moves)
    for move in moves:
        if move.output.kind == "jdbc":
            stage(database, move.output.stage, rows)
    for move in moves:
        store.output_staged(move.output)
    return replace(run, moves=moves)


def _in_table(output: OutputRecord) -> OutputRecord:
    if output.kind != "jdbc":
        return output
    name = quoted(stage_name(output.run_id, output.seq))
    return replace(output, stage=name, target=f"pg:{output.seq}", manifest=())


def stage(database: Any, name: str, rows: tuple[tuple[str, str], ...]) -> None:
    database.execute(f"CREATE TABLE {name} (journal_id text, amount_local numeric(18,4))")
    for row in rows:
        database.execute(f"INSERT INTO {name} VALUES (%s, %s)", row)  # noqa: S608


def gl(database: Any, table: str = "gl") -> list[tuple[str, str]]:
    return [(k, str(v)) for k, v in database.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()]  # noqa: S608


def stages(database: Any) -> int:
    found = database.execute("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'weft_stage%'").fetchone()
    return int(found[0])


def test_rows_that_are_appended_again_are_added_only_as_far_as_they_are_missing(server: Server, database: Any) -> None:
    # Amounts are rounded by the table: they must be compared as it holds them.
    database.execute(
        "CREATE TABLE gl (journal_id text, amount_local numeric(18,2), at timestamptz DEFAULT now() NOT NULL)"
    )
    rows = (("a", "1.004"), ("a", "1.004"), ("b", "2"), (None, "3"))

    def added(*, again: bool) -> list[tuple[Any, str]]:
        stage(database, "s", rows)  # type: ignore[arg-type]
        swap = TableSwap(stage='"s"', schema="", table="gl", columns=COLUMNS, mode="append", again=again)
        with psycopg.connect(server.url()) as connection:
            assert publish(connection, swap)
        found = database.execute("SELECT journal_id, amount_local FROM gl ORDER BY 1, 2").fetchall()
        return [(k, str(v)) for k, v in found]

    once = [("a", "1.00"), ("a", "1.00"), ("b", "2.00"), (None, "3.00")]
    assert added(again=False) == once
    assert added(again=True) == once
    database.execute("DELETE FROM gl WHERE journal_id = 'b'")
    database.execute("DELETE FROM gl WHERE ctid = (SELECT min(ctid) FROM gl WHERE journal_id = 'a')")
    assert added(again=True) == once
    assert added(again=False) == sorted(once * 2, key=lambda r: (r[0] or "z", r[1]))
    assert stages(database) == 0


def test_a_merge_replaces_rows_whose_key_is_null(server: Server, database: Any) -> None:
    stage(database, "gl", (("a", "1"), (None, "2")))  # type: ignore[arg-type]
    stage(database, "s", ((None, "3"), ("b", "4")))  # type: ignore[arg-type]
    swap = TableSwap(stage='"s"', schema="", table="gl", columns=COLUMNS, mode="merge", key=("journal_id",))
    with psycopg.connect(server.url()) as connection:
        assert publish(connection, swap)
    found = database.execute("SELECT journal_id, amount_local::int FROM gl ORDER BY 1").fetchall()
    assert found == [("a", 1), ("b", 4), (None, 3)]


def test_a_stage_table_that_is_not_where_it_is_looked_for_stops_the_run(
    tmp_path: Path, server: Server, database: Any
) -> None:
    root = workspace(tmp_path, server)
    with opened(root) as store:
        run = staged(root, store, database, ("a", "1"))
        database.execute(f"ALTER TABLE {run.moves[0].output.stage} SET SCHEMA fin")
        with pytest.raises(RunError, match=r"W1512.*output 20"):
            run.publish()
        assert {o.state for o in store.outputs(run.run_id)} == {"staged"}
        assert not (root / FILES).exists()


def test_the_schema_of_a_url_is_the_schema_of_its_tables(tmp_path: Path, server: Server, database: Any) -> None:
    root = workspace(tmp_path, server, query="&currentSchema=fin")
    with opened(root) as store:
        run = staged(root, store, database, ("a", "1"))
        database.execute(f"ALTER TABLE {run.moves[0].output.stage} SET SCHEMA fin")
        run.publish()
    assert gl(database, "fin.gl") == [("a", "1.0000")]


REFUSING = """\
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no rows today''; END';
CREATE CONSTRAINT TRIGGER refusing AFTER INSERT ON gl DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse();
"""


def test_what_a_database_refuses_when_it_commits_is_taken_back_everywhere(
    tmp_path: Path, server: Server, database: Any
) -> None:
    root = workspace(tmp_path, server)
    database.execute("CREATE TABLE gl (journal_id text, amount_local numeric(18,4))")
    database.execute(REFUSING)
    with opened(root) as store:
        run = staged(root, store, database, ("a", "1"))
        with pytest.raises(RunError, match=r"W1509.*no rows today"):
            run.publish()
        assert ({o.state for o in store.outputs(run.run_id)}, gl(database)) == ({"staged"}, [])
        assert not (root / FILES).exists()
        database.execute("DROP TRIGGER refusing ON gl")
        run.publish()
    assert gl(database) == [("a", "1.0000")]
    assert (root / FILES).exists()


def test_what_a_second_database_refuses_after_the_first_has_committed_is_left_to_the_next_command(
    tmp_path: Path, server: Server, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of the first cannot be taken back, so the files stay at their target as well."""
    root = workspace(tmp_path, server, second=True)
    database.execute("CREATE TABLE other (journal_id text, amount_local numeric(18,4))")
    database.execute(REFUSING.replace("ON gl", "ON other"))
    with opened(root) as store:
        run = staged(root, store, database, ("a", "1"))
        with pytest.raises(RunError, match=r"W1516.*no rows today"):
            run.publish()
        assert (gl(database), gl(database, "other")) == ([("a", "1.0000")], [])
        assert {o.state for o in store.outputs(run.run_id)} == {"publishing"}
        database.execute("DROP TRIGGER refusing ON other")
        monkeypatch.setattr("weft.pipelines.store.locks.stale", lambda *_: True)
        assert [r.outcome for r in recover(store, root)] == ["completed"]
    assert gl(database) == gl(database, "other") == [("a", "1.0000")]
    assert (root / FILES).exists()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_connection_that_is_lost_in_a_commit_is_settled_by_the_next_command(
    tmp_path: Path, server: Server, database: Any, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Whether the server has committed is not known to the run: it stops, and recovery asks the server."""
    root = workspace(tmp_path, server)
    real: Callable[..., Any] = sink.connect

    def lossy(*given: Any) -> Any:
        connection = real(*given)
        commit = connection.commit

        def lost() -> None:
            if when == "after":
                commit()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

        connection.commit = lost
        return connection

    with opened(root) as store:
        run = staged(root, store, database, ("a", "1"), ("b", "2"))
        with monkeypatch.context() as patched:
            patched.setattr(sink, "connect", lossy)
            with pytest.raises(RunError, match=r"W1516.*did not commit"):
                run.publish()
        assert {o.state for o in store.outputs(run.run_id)} == {"publishing"}
        monkeypatch.setattr("weft.pipelines.store.locks.stale", lambda *_: True)
        # A server that is away decides nothing either.
        server.stop()
        try:
            assert [r.outcome for r in recover(store, root)] == ["waiting"]
        finally:
            server.start()
        assert store.run(run.run_id).status == "running"
        assert [r.outcome for r in recover(store, root)] == ["completed"]
    with psycopg.connect(server.url()) as fresh:
        assert gl(fresh) == [("a", "1.0000"), ("b", "2.0000")]
        assert stages(fresh) == 0
    assert (root / FILES).exists()


def test_only_a_server_without_an_answer_is_out_of_reach(server: Server) -> None:
    with psycopg.connect(server.url()) as connection, pytest.raises(psycopg.Error) as refused:
        connection.execute("SELECT nothing")
    for cause, expected in ((refused.value, False), (psycopg.OperationalError("gone"), True), (None, False)):
        problem = RunError("x", code="W1509")
        problem.__cause__ = cause
        assert is_out_of_reach(problem) is expected


def test_a_full_disk_of_the_database_is_named(
    tmp_path: Path, server: Server, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = workspace(tmp_path, server)

    def full(*_: Any) -> None:
        raise psycopg.errors.DiskFull("could not extend file: No space left on device")

    with opened(root) as store:
        run = staged(root, store, database, ("a", "1"))
        with monkeypatch.context() as patched:
            patched.setattr("weft.io.spark.database._move", full)
            with pytest.raises(RunError, match="W1508"):
                run.publish()
        assert not (root / FILES).exists()
        run.publish()
    assert gl(database) == [("a", "1.0000")]


def test_discarded_rows_leave_no_stage_table(tmp_path: Path, server: Server, database: Any) -> None:
    root = workspace(tmp_path, server)
    with opened(root) as store:
        run = staged(root, store, database, ("a", "1"))
        found = Tables(run.plan, run.catalog, root)
        found.discard([Move(move.output, "append") for move in run.moves])
    assert stages(database) == 0
