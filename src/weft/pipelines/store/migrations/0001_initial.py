"""The first schema of the store: versions, runs, locks."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from weft.pipelines.store.column_types import Json, Moment

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    _versions()
    _runs()
    _parts_of_runs()


def _column(name: str, kind: Any, *, optional: bool = False) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=optional)


def _check(table: str, name: str, condition: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(condition, name=op.f(f"ck_{table}_{name}"))


def _one_of(table: str, column: str, words: str) -> sa.CheckConstraint:
    allowed = ", ".join(f"'{word}'" for word in words.split())
    return _check(table, column, f"{column} IN ({allowed})")


def _of_run(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f(f"fk_{table}_runs"), ondelete="CASCADE")


def _versions() -> None:
    op.create_table(
        "datasets",
        _column("id", sa.Text),
        _column("version", sa.Integer),
        _column("name", sa.Text),
        _column("status", sa.Text),
        _column("origin", sa.Text),
        _column("body", Json),
        _column("fingerprint", sa.Text),
        _column("published_at", Moment),
        sa.PrimaryKeyConstraint("id", "version", name=op.f("pk_datasets")),
        sa.UniqueConstraint("name", "version", name=op.f("uq_datasets_name_version")),
        _one_of("datasets", "status", "active disabled"),
        _one_of("datasets", "origin", "file registered"),
        _check("datasets", "version", "version > 0"),
    )
    op.create_table(
        "projects",
        _column("id", sa.Text),
        _column("version", sa.Integer),
        _column("name", sa.Text),
        _column("status", sa.Text),
        _column("body", Json),
        _column("fingerprint", sa.Text),
        _column("created_at", Moment),
        sa.PrimaryKeyConstraint("id", "version", name=op.f("pk_projects")),
        _one_of("projects", "status", "draft active inactive conflict"),
        _check("projects", "version", "version > 0"),
    )
    op.create_table(
        "resolvers",
        _column("id", sa.Text),
        _column("version", sa.Integer),
        _column("body", Json),
        _column("fingerprint", sa.Text),
        _column("status", sa.Text),
        _column("created_at", Moment),
        sa.PrimaryKeyConstraint("id", "version", name=op.f("pk_resolvers")),
        _one_of("resolvers", "status", "active disabled"),
        _check("resolvers", "version", "version > 0"),
    )


def _runs() -> None:
    op.create_table(
        "run_snapshots",
        _column("sha", sa.Text),
        _column("body", sa.Text),
        sa.PrimaryKeyConstraint("sha", name=op.f("pk_run_snapshots")),
    )
    ended = "status IN ('completed', 'failed', 'cancelled')"
    op.create_table(
        "runs",
        _column("id", sa.Text),
        _column("project_id", sa.Text),
        _column("project_name", sa.Text),
        _column("project_version", sa.Integer),
        _column("period", sa.Text),
        _column("level", sa.Text),
        _column("status", sa.Text),
        _column("trigger", sa.Text),
        _column("triggered_by", sa.Text),
        _column("sandbox", sa.Boolean),
        _column("known_at", Moment),
        _column("run_at", Moment),
        _column("created_at", Moment),
        _column("started_at", Moment, optional=True),
        _column("completed_at", Moment, optional=True),
        _column("last_completed_operation", sa.Integer, optional=True),
        _column("error", Json, optional=True),
        _column("snapshot_sha", sa.Text),
        _column("parent_run_id", sa.Text, optional=True),
        _column("rerun_of", sa.Text, optional=True),
        _column("attempt", sa.Integer),
        _column("host", sa.Text),
        _column("pid", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.ForeignKeyConstraint(["snapshot_sha"], ["run_snapshots.sha"], name=op.f("fk_runs_run_snapshots")),
        _one_of("runs", "status", "queued running completed failed cancelled"),
        _one_of("runs", "trigger", "manual scheduled test"),
        _check("runs", "attempt", "attempt > 0"),
        _check("runs", "error", "(status = 'failed') = (error IS NOT NULL)"),
        _check("runs", "completed_at", f"({ended}) = (completed_at IS NOT NULL)"),
    )
    op.create_index(op.f("ix_runs_project_id_period"), "runs", ["project_id", "period"])
    op.create_index(op.f("ix_runs_created_at"), "runs", ["created_at"])


def _parts_of_runs() -> None:
    op.create_table(
        "project_state",
        _column("project_id", sa.Text),
        _column("status", sa.Text),
        _column("active_version", sa.Integer, optional=True),
        _column("pinned_dataset_version", sa.Integer, optional=True),
        _column("conflict", Json, optional=True),
        _column("updated_at", Moment),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_project_state")),
        _one_of("project_state", "status", "draft active inactive conflict"),
        _check("project_state", "conflict", "(status = 'conflict') = (conflict IS NOT NULL)"),
    )
    op.create_table(
        "run_operations",
        _column("run_id", sa.Text),
        _column("seq", sa.Integer),
        _column("name", sa.Text),
        _column("type", sa.Text),
        _column("status", sa.Text),
        _column("rows_in", sa.BigInteger, optional=True),
        _column("rows_out", sa.BigInteger, optional=True),
        _column("rows_changed", sa.BigInteger, optional=True),
        _column("joins", Json),
        _column("started_at", Moment, optional=True),
        _column("completed_at", Moment, optional=True),
        sa.PrimaryKeyConstraint("run_id", "seq", name=op.f("pk_run_operations")),
        _of_run("run_operations"),
        _one_of("run_operations", "type", "update aggregate append delete output"),
        _one_of("run_operations", "status", "pending running completed failed"),
    )
    _published()
    op.create_table(
        "locks",
        _column("name", sa.Text),
        _column("run_id", sa.Text),
        _column("owner", sa.Text),
        _column("host", sa.Text),
        _column("pid", sa.BigInteger),
        _column("acquired_at", Moment),
        _column("heartbeat_at", Moment),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_locks")),
        _of_run("locks"),
    )
    op.create_table(
        "inputs",
        _column("run_id", sa.Text),
        _column("name", sa.Text),
        _column("print", Json),
        sa.PrimaryKeyConstraint("run_id", "name", name=op.f("pk_inputs")),
        _of_run("inputs"),
    )


def _published() -> None:
    op.create_table(
        "run_outputs",
        _column("run_id", sa.Text),
        _column("seq", sa.Integer),
        _column("state", sa.Text),
        _column("stage", sa.Text),
        _column("target", sa.Text),
        _column("backup", sa.Text),
        _column("kind", sa.Text),
        _column("format", sa.Text),
        _column("rows", sa.BigInteger),
        _column("columns", Json),
        _column("manifest", Json),
        _column("dataset_id", sa.Text, optional=True),
        _column("dataset_name", sa.Text, optional=True),
        _column("dataset_version", sa.Integer, optional=True),
        sa.PrimaryKeyConstraint("run_id", "seq", name=op.f("pk_run_outputs")),
        _of_run("run_outputs"),
        _one_of("run_outputs", "state", "staged publishing published discarded"),
    )
    op.create_table(
        "dataset_locations",
        _column("dataset_id", sa.Text),
        _column("version", sa.Integer),
        _column("period", sa.Text),
        _column("location", Json),
        _column("run_id", sa.Text),
        _column("seq", sa.Integer),
        sa.PrimaryKeyConstraint("dataset_id", "version", "period", name=op.f("pk_dataset_locations")),
        sa.UniqueConstraint("run_id", "seq", name=op.f("uq_dataset_locations_run_id_seq")),
        sa.ForeignKeyConstraint(
            ["dataset_id", "version"], ["datasets.id", "datasets.version"], name=op.f("fk_dataset_locations_datasets")
        ),
    )
