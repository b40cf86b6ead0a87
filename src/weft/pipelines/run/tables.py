"""Outputs that are tables: changed by their database in one transaction, or by Spark one after another."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.core.calendar import Period
from weft.core.crash import crash_point
from weft.errors import RunError
from weft.io.datasource import DataSource
from weft.io.spark import database
from weft.io.spark.database import TableSwap
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.operations.resolved import ResolvedOutput
from weft.pipelines.plan.project import ProjectPlan
from weft.pipelines.plan.reads import list_period_identifiers
from weft.pipelines.run.moving import Move, table_stage, unfinished


@dataclass(frozen=True, slots=True)
class Tables:
    """Moves the staged rows of a plan into tables; only tables of Spark need a session."""

    plan: ProjectPlan
    catalog: Catalog
    root: Path
    session: Any = None

    def verify(self, moves: Sequence[Move]) -> None:
        """Raise W1512 unless every stage table exists; later a missing one means that it was published."""
        for source_id, group in self._servers(moves).items():
            with closing(database.connect(self._source(source_id), self.root)) as connection:
                for move in group:
                    if not database.table_exists(connection, move.output.stage):
                        raise RunError(
                            f"output {move.output.seq} cannot be published: its rows were staged in "
                            f"{move.output.stage}, which datasource {source_id!r} does not have",
                            code="W1512",
                            help="set the schema as `schema` of the datasource, not in its url; then resume the run",
                        )

    def publish(self, moves: Sequence[Move]) -> None:
        """Change every table; outputs that were moved before stay as they are.

        Databases prepare first, then tables of Spark change, then databases commit: errors of a database occur
        before any change is visible.
        """
        outputs = self._outputs()
        with ExitStack() as open_ones:
            ready: list[tuple[Any, list[Move]]] = []
            for source_id, group in self._servers(moves).items():
                connection = database.connect(self._source(source_id), self.root)
                open_ones.callback(connection.close)  # without a commit everything is rolled back
                for move in group:
                    swap = self._swap(move, outputs[move.output.seq])
                    database.publish(connection, swap, added=self._was_added(move))
                ready.append((connection, group))
            crash_point("tables_prepared")
            # Once a table has changed, a failure can no longer be undone: W1516 leaves the rest to `recover`.
            added = False
            for move in moves:
                if move.output.kind == "table" and not self._was_added(move):
                    self._publish_table(move, outputs[move.output.seq])
                    self._mark([move])
                    added = True
            for connection, group in ready:
                _commit(connection, group, final=added)
                added = True
                crash_point("tables_committed")
                self._mark(group)

    def _outputs(self) -> dict[int, ResolvedOutput]:
        return {op.seq: op for op in self.plan.operations if isinstance(op, ResolvedOutput)}

    def _servers(self, moves: Sequence[Move]) -> dict[str, list[Move]]:
        outputs = self._outputs()
        servers: dict[str, list[Move]] = {}
        for move in moves:
            if move.output.kind == "jdbc":
                servers.setdefault(str(outputs[move.output.seq].target.datasource_id), []).append(move)
        return servers

    def _marker(self, move: Move) -> Path:
        return table_stage(self.root, move.output.run_id, move.output.seq).with_suffix(".added")

    def _was_added(self, move: Move) -> bool:
        """Whether appended rows are in the table: a run that continues must not append them again."""
        # Other modes give the same rows however often they run.
        return move.mode == "append" and self._marker(move).exists()

    def _mark(self, moves: Sequence[Move]) -> None:
        for move in moves:
            if move.mode == "append":
                _written(self._marker(move), "", move)

    def discard(self, moves: Sequence[Move]) -> None:
        """Remove the stage tables."""
        for source_id, group in self._servers(moves).items():
            # As a context manager, a connection of psycopg commits and closes at the end of the block.
            with database.connect(self._source(source_id), self.root) as connection:
                for move in group:
                    database.drop_stage(connection, move.output.stage)

    def _publish_table(self, move: Move, op: ResolvedOutput) -> None:
        if self.session is None:
            raise RunError(
                f"output {op.seq} is a table of Spark and needs a session",
                code="W1512",
                help="start a run: it completes this one first",
            )
        stage = Path(move.output.stage)
        if not stage.exists():
            return
        # Loaded here, because whoever recovers a run without such an output needs no pyspark.
        sink = importlib.import_module("weft.io.spark.catalog_table")
        name = sink.table_name(op.target.table, op.target.schema, self._source(str(op.target.datasource_id)))
        again = move.again or (op.mode == "append" and self._may_have_added(move, name))
        sink.publish_table(self.session, stage, name, mode=op.mode, periods=self._periods(), again=again)

    def _may_have_added(self, move: Move, name: str) -> bool:
        """Whether an earlier attempt may have added rows to a table of Spark before its process died."""
        # The attempt wrote down the number of rows before; with the same number now, it added none.
        note = self._marker(move).with_suffix(".adding")
        there = self.session.table(name).count() if self.session.catalog.tableExists(name) else 0
        if note.exists():
            return note.read_text(encoding="utf-8") != str(there)
        # Written before the rows: a crash between the two leaves the number as it is.
        _written(note, str(there), move)
        return False

    def _swap(self, move: Move, op: ResolvedOutput) -> TableSwap:
        source = self._source(str(op.target.datasource_id))
        return TableSwap(
            stage=move.output.stage,
            schema=op.target.schema or str(source.options.get("schema") or ""),
            table=str(op.target.table),
            columns=op.columns,
            mode=op.mode,
            periods=self._periods(),
            key=op.merge_key,
            again=move.again,
        )

    def _periods(self) -> tuple[str, ...]:
        period = self.plan.period
        assert isinstance(period, Period)  # noqa: S101  # a plan of a run has one
        return list_period_identifiers(period, self.catalog.calendar(self.plan.calendar))

    def _source(self, name: str) -> DataSource:
        source = self.catalog.datasource(name)
        if source is None:
            raise RunError(
                f"unknown datasource {name!r} of the output", code="W1512", help="restore its file in datasources/"
            )
        return source


def _commit(connection: Any, moves: Sequence[Move], *, final: bool) -> None:
    """Commit; W1509 when the server refuses, W1516 when it did not answer or other tables are changed already."""
    try:
        connection.commit()
    except importlib.import_module("psycopg").Error as cause:
        why = str(cause).strip() or type(cause).__name__
        # Without a state the connection broke, and the server may have committed before it did.
        if final or cause.sqlstate is None:
            raise unfinished(moves[0].output.run_id, f"the database did not commit: {why}") from cause
        raise RunError(
            f"the database rejected the rows of output {moves[0].output.seq}: {why}",
            code="W1509",
            help="check the constraints of the table, then resume the run",
        ) from cause


def _written(marker: Path, text: str, move: Move) -> None:
    """Write a marker beside the stage; a failure cannot be undone, because a table may have changed already."""
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.write_text(text, encoding="utf-8")
    except OSError as cause:
        raise unfinished(move.output.run_id, f"{marker} cannot be written: {cause.strerror}") from cause
