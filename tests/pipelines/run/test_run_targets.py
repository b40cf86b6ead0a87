"""Runs that write somewhere else than into a new folder: nothing at all, merged files, tables; and previews."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from engine_data import CONVERT, WRITE, project_text, sample_workspace
from engine_runs import loaded, opened, ran, rows
from needed import stop_without
from postgres import Server, running_server
from weft.errors import ExpressionError, OperationError, RunError
from weft.io.spark.session import Session, installed_jars
from weft.pipelines.run.moving import staged_runs
from weft.pipelines.run.preview import preview
from weft.pipelines.run.report import RunReport
from weft.pipelines.run.resume import rerun, resume
from weft.pipelines.spark.stage import stage as stage_output

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUT = "out/processed_gl/period=2026-01"
COLUMNS = "columns: [journal_id, line_number, amount_reporting, _period]"
DATABASE = f"""\
- {{seq: 20, name: Table, type: output, arguments: {{destination: {{datasource_id: pg, table: gl}}, register_as_dataset: gl_db, {COLUMNS}}}}}
- {{seq: 30, name: Files, type: output, arguments: {{destination: {{path: out/files}}, {COLUMNS}}}}}
"""
SPARK_TABLE = f"""\
- {{seq: 20, name: Table, type: output, arguments: {{destination: {{datasource_id: lake, table: weft_run_gl}}, register_as_dataset: gl_lake, {COLUMNS}}}}}
"""


def reading(dataset: str) -> str:
    """Return a project that writes what another one registered."""
    return f"""\
project:
  name: reader
  version: 1
  status: active
  input: {dataset}
  operations:
    - {{seq: 10, name: Write, type: output, arguments: {{destination: {{path: out/read}}, columns: [journal_id, amount_reporting]}}}}
"""


def test_a_period_without_rows_writes_an_empty_output(tmp_path: Path, spark: SparkSession) -> None:
    root = sample_workspace(tmp_path)
    with opened(root) as store:
        report = ran(root, store, spark, period="2026-03")
    assert report.ok, report.diagnostics
    assert [(o.rows, o.location) for o in report.outputs] == [(0, "out/processed_gl/period=2026-03")]
    assert [(o.rows_in, o.rows_changed) for o in report.operations] == [(0, 0), (0, 0)]
    assert spark.read.parquet(str(root / report.outputs[0].location)).columns[0] == "journal_id"


def test_a_merge_keeps_rows_with_other_keys(tmp_path: Path, spark: SparkSession) -> None:
    merge = WRITE + "    mode: merge\n"
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": project_text([CONVERT, merge])})
    with opened(root) as store:
        assert ran(root, store, spark).ok
        file = root / "data" / "transactions.csv"
        lines = file.read_text(encoding="utf-8").splitlines()
        kept = [line.replace("8500.00", "1000.00") for line in lines if line.startswith(("journal_id", "JE-002"))]
        file.write_text("\n".join(kept) + "\n", encoding="utf-8")
        report = ran(root, store, spark)
        assert report.ok, report.diagnostics
        found = {r[:2]: r[2] for r in rows(spark, root / OUT, "journal_id", "line_number", "amount_reporting")}
    assert (len(found), found["JE-002", 1], found["JE-005", 1]) == (
        10,
        Decimal("1092.00"),
        Decimal("16800.00"),
    )
    assert report.outputs[0].rows == 10


def test_a_target_that_changes_while_it_is_merged_stops_the_run_and_a_resume_takes_it_in(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge = WRITE + "    mode: merge\n"
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": project_text([CONVERT, merge])})
    with opened(root) as store:
        assert ran(root, store, spark).ok
        (file,) = (root / OUT).iterdir()

        def stage(*given: Any, **named: Any) -> Any:
            found = stage_output(*given, **named)
            # Somebody adds a row while this output is written: it must not vanish with the exchange.
            theirs = spark.read.parquet(str(file)).limit(1)
            renamed = theirs.withColumn("journal_id", F.lit("JE-999"))
            pq.write_table(renamed.toArrow(), root / OUT / "theirs.parquet")
            return found

        with monkeypatch.context() as patched:
            patched.setattr("weft.pipelines.run.engine.stage_output", stage)
            report = ran(root, store, spark)
        assert report.failure is not None
        assert (report.status, report.failure.code) == ("failed", "W1512")
        assert len(rows(spark, root / OUT)) == 11
        again = resume(report.run_id, root=root, store=store, session=Session(spark))
        assert again.ok, again.diagnostics
        assert sum(key == "JE-999" for (key,) in rows(spark, root / OUT, "journal_id")) == 1


def test_a_table_of_spark_is_replaced_period_by_period(tmp_path: Path, spark: SparkSession) -> None:
    lake = "datasource: {id: lake, name: lake, type: table, options: {schema: default}}\n"
    text = project_text([CONVERT, SPARK_TABLE])
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": text, "datasources/lake.yml": lake})
    spark.sql("DROP TABLE IF EXISTS weft_run_gl")
    try:
        with opened(root) as store:
            for period, count in (("2026-01", 10), ("2026-02", 11), ("2026-01", 11)):
                report = ran(root, store, spark, period=period)
                assert report.ok, report.diagnostics
                assert spark.table("weft_run_gl").count() == count
            # What was registered is read from the table: a month has its rows, a quarter reads it once.
            (root / "projects" / "reader.yml").write_text(reading("gl_lake"), encoding="utf-8")
            month = ran(root, store, spark, period="2026-02", project="reader")
            assert (month.ok, month.operations[0].rows_in) == (True, 1), month.diagnostics
            quarter = ran(root, store, spark, period="2026-Q1", project="reader")
            assert (quarter.ok, quarter.operations[0].rows_in) == (True, 11), quarter.diagnostics
            again = rerun(quarter.run_id, workspace=loaded(root), store=store, session=Session(spark))
            assert again.ok, again.diagnostics
        assert staged_runs(root) == ()
    finally:
        spark.sql("DROP TABLE IF EXISTS weft_run_gl")


def test_rows_are_added_to_a_table_once_although_the_run_fails_after_it(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = "datasource: {id: lake, name: lake, type: table, options: {schema: default}}\n"
    added = SPARK_TABLE.replace("weft_run_gl", "weft_run_added").replace("columns:", "mode: append, columns:")
    text = project_text([CONVERT, added])
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": text, "datasources/lake.yml": lake})
    spark.sql("DROP TABLE IF EXISTS weft_run_added")

    def failing(*_: object) -> None:
        raise RunError("the store says no", code="W1512", help="try again")

    try:
        with opened(root) as store:
            with monkeypatch.context() as patched:
                patched.setattr(store, "complete", failing)
                report = ran(root, store, spark)
            assert (report.status, spark.table("weft_run_added").count()) == ("failed", 10)
            again = resume(report.run_id, root=root, store=store, session=Session(spark))
            assert (again.ok, spark.table("weft_run_added").count()) == (True, 10), again.diagnostics
            assert ran(root, store, spark).ok
            assert spark.table("weft_run_added").count() == 20
    finally:
        spark.sql("DROP TABLE IF EXISTS weft_run_added")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if not installed_jars():
        stop_without("this test needs the JDBC driver of PostgreSQL: `scripts/jars` fetches it")
    with running_server() as found:
        yield found


def test_a_table_of_a_database_and_files_are_published_together(
    tmp_path: Path, spark: SparkSession, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GL_DB", "weft:ignored")
    url = "jdbc:" + server.url().replace("weft@", "")
    pg = f'datasource: {{id: pg, name: pg, type: jdbc, credential_ref: "env:GL_DB", options: {{url: "{url}"}}}}\n'
    text = project_text([CONVERT, DATABASE])
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": text, "datasources/pg.yml": pg})
    files = root / "out" / "files" / "period=2026-01"
    with opened(root) as store, psycopg.connect(server.url(), autocommit=True) as database:
        # The database refuses the rows: the files, which were moved before, are put back.
        database.execute(
            "CREATE TABLE gl (journal_id text, line_number bigint, amount_reporting numeric(18,2) CHECK "
            "(amount_reporting > 0), _period text)"
        )
        report = ran(root, store, spark)
        assert report.failure is not None
        assert (report.status, report.failure.code, files.exists()) == ("failed", "W1509", False)
        assert database.execute("SELECT count(*) FROM gl").fetchone() == (0,)
        database.execute("ALTER TABLE gl DROP CONSTRAINT gl_amount_reporting_check")
        again = resume(report.run_id, root=root, store=store, session=Session(spark))
        assert again.ok, again.diagnostics
        assert ran(root, store, spark).ok
        found = database.execute("SELECT journal_id, amount_reporting FROM gl ORDER BY 1, line_number").fetchall()
        assert (len(found), found[2]) == (10, ("JE-002", Decimal("9282.00")))
        assert len(rows(spark, files)) == 10
        left = database.execute("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'weft_stage%'").fetchone()
        assert left == (0,)
        assert (again.outputs[0].dataset, again.outputs[0].dataset_version) == ("gl_db", 1)
        (root / "projects" / "reader.yml").write_text(reading("gl_db"), encoding="utf-8")
        read = ran(root, store, spark, project="reader")
        assert (read.ok, read.outputs[0].rows) == (True, 10), read.diagnostics
        assert read.resolver_snapshot["input_dataset_version"] == 2


APPENDING = """\
- {seq: 20, name: Table, type: output, arguments: {destination: {datasource_id: pg, table: added}, mode: append, columns: [journal_id, amount_reporting, _row_id, _labels, _updated_at]}}
- {seq: 30, name: Lake, type: output, arguments: {destination: {datasource_id: lake, table: weft_run_again}, mode: append, columns: [journal_id, amount_reporting, _row_id, _labels, _updated_at]}}
- {seq: 40, name: Files, type: output, arguments: {destination: {path: out/files}, mode: append}}
"""


def test_a_rerun_replaces_the_rows_that_its_run_has_appended(
    tmp_path: Path, spark: SparkSession, server: Server
) -> None:
    url = "jdbc:" + server.url().replace("weft@", "") + "?user=weft"
    root = sample_workspace(
        tmp_path,
        {
            "projects/fx_reporting.yml": project_text([CONVERT, APPENDING]),
            "datasources/pg.yml": f'datasource: {{id: pg, name: pg, type: jdbc, options: {{url: "{url}"}}}}\n',
            "datasources/lake.yml": "datasource: {id: lake, name: lake, type: table, options: {schema: default}}\n",
        },
    )
    files = root / "out" / "files" / "period=2026-01"
    spark.sql("DROP TABLE IF EXISTS weft_run_again")
    try:
        with opened(root) as store, psycopg.connect(server.url(), autocommit=True) as database:

            def counts() -> list[int]:
                (found,) = database.execute("SELECT count(*) FROM added").fetchone() or (0,)
                return [found, spark.table("weft_run_again").count(), len(rows(spark, files, "journal_id"))]

            def again(run: str, **given: Any) -> RunReport:
                return rerun(run, workspace=loaded(root), store=store, session=Session(spark), **given)

            first = ran(root, store, spark)
            assert (first.ok, counts()) == (True, [10, 10, 10]), first.diagnostics
            second = again(first.run_id)
            assert (second.identical, counts()) == (True, [10, 10, 10]), second.diagnostics
            # A run of its own adds its rows; a rerun of a rerun is one of the first run, and puts back what is missing.
            assert ran(root, store, spark).ok
            database.execute("DELETE FROM added WHERE journal_id = 'JE-002'")
            assert (again(second.run_id).ok, counts()) == (True, [18, 20, 20])
            data = root / "data" / "transactions.csv"
            data.write_text(data.read_text(encoding="utf-8").replace("8500.00", "1000.00"), encoding="utf-8")
            with pytest.raises(RunError, match=r"W1515.*pg:added"):
                again(first.run_id, allow_changed_inputs=True)
            assert counts() == [18, 20, 20]
    finally:
        spark.sql("DROP TABLE IF EXISTS weft_run_again")


def test_a_preview_shows_what_an_operation_would_change(tmp_path: Path, spark: SparkSession) -> None:
    root = sample_workspace(tmp_path)
    workspace = loaded(root)
    project, session = workspace.projects[0], Session(spark)
    found = preview(workspace, project, 10, "2026-01", reader=None, session=session, where="currency = 'EUR'")
    assert [
        (b and b["amount_reporting"], a["amount_reporting"]) for b, a in zip(found.before, found.after, strict=True)
    ] in (
        [(None, Decimal("9282.00")), (None, Decimal("-9282.00"))],
        [(None, Decimal("-9282.00")), (None, Decimal("9282.00"))],
    )
    assert found.changed == (("amount_reporting",),) * 2
    written = preview(workspace, project, 20, "2026-01", reader=None, session=session, rows=3)
    assert (len(written.after), written.columns[0], written.type) == (3, "journal_id", "output")
    with pytest.raises(OperationError, match="has no operation 15"):
        preview(workspace, project, 15, "2026-01", reader=None, session=session)
    with pytest.raises(ExpressionError, match="W0207"):
        preview(workspace, project, 10, "2026-01", reader=None, session=session, where="curency = 'EUR'")
    assert not (root / ".weft").exists()
