"""Outputs that are tables: exchanged by their database in one transaction, or by Spark one after another."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from weft.core.period import Period
from weft.errors import RunError
from weft.plan.catalog import Catalog
from weft.plan.operations.resolved import ResolvedOutput
from weft.plan.project import ProjectPlan
from weft.plan.temporal import period_identifiers
from weft.run.moving import Move
from weft.run.places import table_stage
from weft.spark.sink import database
from weft.spark.sink.database import TableSwap
from weft.spec.pipeline.datasource import DataSource


class Tables(Protocol):
    """What brings staged rows into tables."""

    def publish(self, moves: Sequence[Move]) -> None:
        """Bring every one to its table; what was brought before stays as it is."""

    def discard(self, moves: Sequence[Move]) -> None:
        """Remove what is staged in databases."""


@dataclass(frozen=True, slots=True)
class _Tables:
    plan: ProjectPlan
    catalog: Catalog
    root: Path
    session: Any

    def publish(self, moves: Sequence[Move]) -> None:
        outputs = {op.seq: op for op in self.plan.operations if isinstance(op, ResolvedOutput)}
        servers: dict[str, list[Move]] = {}
        for move in moves:
            if move.output.kind == "jdbc":
                servers.setdefault(str(outputs[move.output.seq].target.datasource_id), []).append(move)
        for source_id, found in servers.items():
            connection = database.connect(self._source(source_id), self.root)
            with connection:  # commits at its end, and takes everything back when something fails
                for move in found:
                    if self._was_added(move):
                        database.drop_stage(connection, move.output.stage)
                    else:
                        database.publish(connection, self._swap(move, outputs[move.output.seq]))
            self._mark(found)
        for move in moves:
            if move.output.kind == "table" and not self._was_added(move):
                self._publish_table(move, outputs[move.output.seq])
                self._mark([move])

    def _marker(self, move: Move) -> Path:
        return table_stage(self.root, move.output.run_id, move.output.seq).with_suffix(".added")

    def _was_added(self, move: Move) -> bool:
        """Whether rows that are added to a table are there: a run that goes on must not add them again."""
        return move.mode == "append" and self._marker(move).exists()

    def _mark(self, moves: Sequence[Move]) -> None:
        for marker in (self._marker(move) for move in moves if move.mode == "append"):
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.touch()

    def discard(self, moves: Sequence[Move]) -> None:
        outputs = {op.seq: op for op in self.plan.operations if isinstance(op, ResolvedOutput)}
        for move in moves:
            if move.output.kind == "jdbc":
                source = self._source(str(outputs[move.output.seq].target.datasource_id))
                with database.connect(source, self.root) as connection:
                    database.drop_stage(connection, move.output.stage)

    def _publish_table(self, move: Move, op: ResolvedOutput) -> None:
        if self.session is None:
            raise RunError(
                f"output {op.seq} goes to a table of Spark, and there is no session",
                code="W1512",
                help="start a run: it completes this one first",
            )
        stage = Path(move.output.stage)
        if not stage.exists():
            return
        # Loaded here, because whoever recovers a run without such an output needs no pyspark.
        sink = importlib.import_module("weft.spark.sink.catalog_table")
        name = sink.table_name(op.target.table, op.target.schema, self._source(str(op.target.datasource_id)))
        sink.publish_table(self.session, stage, name, mode=op.mode, periods=self._periods())

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
        )

    def _periods(self) -> tuple[str, ...]:
        period = self.plan.period
        assert isinstance(period, Period)  # noqa: S101  # a plan of a run has one
        return period_identifiers(period, self.catalog.calendar(self.plan.calendar))

    def _source(self, said: str) -> DataSource:
        found = self.catalog.datasource(said)
        if found is None:
            raise RunError(
                f"the output goes to the datasource {said!r}, which is not there",
                code="W1512",
                help="put its file back into datasources/",
            )
        return found


def database_tables(plan: ProjectPlan, catalog: Catalog, root: Path, session: Any = None) -> Tables:
    """Return what publishes the tables of a plan; only tables of Spark need a session."""
    return _Tables(plan, catalog, root, session)
