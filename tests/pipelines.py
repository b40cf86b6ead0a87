"""Projects on the FX workspace for tests: planned without Spark, and run on rows given in Python."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine_data import project_text, sample_workspace
from visible_rows import is_visible
from weft.core.calendar import GREGORIAN
from weft.errors import ActivationError
from weft.pipelines.model.project import Project
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.model.values import temporal_columns
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.failures import Failure
from weft.pipelines.plan.operations.resolved import ResolvedOutput
from weft.pipelines.plan.project import ProjectPlan, Read, check_project, resolve_project

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from weft.pipelines.spark.counts import OperationCounts
    from weft.pipelines.spark.frame import Lowering

RUN_AT = dt.datetime(2026, 11, 15, 12, 0, tzinfo=dt.UTC)
Rows = Sequence[Mapping[str, Any]]

COUNTRIES = """\
dataset:
  id: countries
  name: countries
  version: 1
  status: active
  main_table:
    name: countries
    temporal_mode: snapshot
    columns: [{name: code, type: string}, {name: continent, type: string}]
"""
CUSTOMERS = """\
dataset:
  id: customers
  name: customers
  version: 1
  status: active
  main_table:
    name: customers
    temporal_mode: snapshot
    columns: [{name: id, type: string}, {name: country_code, type: string}]
  lookups:
    - alias: country
      target: {type: dataset, id: countries}
      join_conditions: [{source_column: country_code, target_column: code}]
"""
WRITE_ALL = """\
- seq: 900
  name: Write
  type: output
  arguments: {destination: {datasource_id: warehouse, table: result}}
"""


@dataclass(frozen=True)
class Site:
    """A project and the catalog it is planned against."""

    project: Project
    catalog: Catalog
    root: Path

    def plan(self, period: str = "2026-01", **options: Any) -> ProjectPlan:
        """Return the plan of a run."""
        found = GREGORIAN.parse(period)
        return resolve_project(self.project, self.catalog, period=found, calendar=GREGORIAN, **options)

    def failures(self) -> tuple[Failure, ...]:
        """Return why the project cannot be activated."""
        return check_project(self.project, self.catalog)

    def messages(self) -> list[tuple[str, str]]:
        """Return code and message of each failure."""
        return [(f.diagnostic.code, f.detail) for f in self.failures()]

    def refused(self) -> ActivationError:
        """Return the error of a plan that cannot be made."""
        try:
            self.plan()
        except ActivationError as error:
            return error
        raise AssertionError("the plan was made")


def site(
    folder: Path,
    operations: str | Sequence[str],
    changes: Mapping[str, str | None] | None = None,
    *,
    selectors: Mapping[str, str] | None = None,
    **keys: Any,
) -> Site:
    """Write the FX workspace with a project of these operations, and read it."""
    text = project_text(operations, selectors=selectors, **keys)
    number = len(list(folder.iterdir())) if folder.exists() else 0
    root = sample_workspace(folder / str(number), {"projects/fx_reporting.yml": text, **(changes or {})})
    loaded = load_workspace(root)
    assert not loaded.findings, "\n".join(map(str, loaded.findings))
    return Site(loaded.workspace.projects[0], Catalog.of(loaded.workspace), root)


def update(seq: int = 10, /, *, joins: str = "", selector: str = "", **assignments: str) -> str:
    """Return an update; `joins` are YAML list entries.

    >>> print(update(usd="amount_local * 2"))
    - seq: 10
      name: Update 10
      type: update
      arguments:
        assignments:
          - {column: usd, expression: 'amount_local * 2'}
    """
    lines = [f"- seq: {seq}", f"  name: Update {seq}", "  type: update"]
    if selector:
        lines.append(f"  selector: {_quoted(selector)}")
    lines.append("  arguments:")
    if joins:
        lines += ["    joins:", *(f"      {line}" for line in joins.strip("\n").split("\n"))]
    lines.append("    assignments:")
    lines += [f"      - {{column: {name}, expression: {_quoted(text)}}}" for name, text in assignments.items()]
    return "\n".join(lines)


def join(alias: str, dataset: str, on: str, **more: Any) -> str:
    """Return one join of an update."""
    lines = [f"- alias: {alias}", f"  dataset_id: {dataset}", f"  on: {_quoted(on)}"]
    return "\n".join([*lines, *(f"  {key}: {value}" for key, value in more.items())]) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def transactions() -> list[dict[str, Any]]:
    """Return the ten sample transactions of 2026-01."""
    lines = (
        ("JE-001", 1, 5, "4100", "CC-100", "USD", "15000.00", "15000.00", "Product revenue", "ERP"),
        ("JE-001", 2, 5, "1200", "CC-100", "USD", "15000.00", "15000.00", "AR - product revenue", "ERP"),
        ("JE-002", 1, 10, "5100", "CC-200", "EUR", "8500.00", None, "Office supplies", "EXPENSE"),
        ("JE-002", 2, 10, "2100", "CC-200", "EUR", "-8500.00", None, "AP - office supplies", "EXPENSE"),
        ("JE-003", 1, 15, "4200", "CC-300", "GBP", "22000.00", None, "Consulting revenue", "ERP"),
        ("JE-003", 2, 15, "1200", "CC-300", "GBP", "22000.00", None, "AR - consulting", "ERP"),
        ("JE-004", 1, 20, "5200", "CC-100", "USD", "3200.00", "3200.00", "Travel expense", "EXPENSE"),
        ("JE-004", 2, 20, "2100", "CC-100", "USD", "-3200.00", "-3200.00", "AP - travel", "EXPENSE"),
        ("JE-005", 1, 25, "4100", "CC-200", "JPY", "2500000.00", None, "Product revenue JP", "ERP"),
        ("JE-005", 2, 25, "1200", "CC-200", "JPY", "2500000.00", None, "AR - product JP", "ERP"),
    )
    return [
        {
            "journal_id": journal,
            "line_number": number,
            "posting_date": dt.date(2026, 1, day),
            "account_code": account,
            "cost_center_code": center,
            "currency": currency,
            "amount_local": Decimal(local),
            "amount_reporting": None if reporting is None else Decimal(reporting),
            "description": description,
            "source_system": system,
            "_period": "2026-01",
        }
        for journal, number, day, account, center, currency, local, reporting, description, system in lines
    ]


def transaction(journal: str, **values: Any) -> dict[str, Any]:
    """Return one transaction of 2026-01, the first of its journal unless it says otherwise."""
    return {
        **transactions()[0],
        "journal_id": journal,
        "amount_reporting": None,
        **values,
    }


def rate(currency: str, value: str, kind: str = "closing", start: str = "2026-01-01", end: str = "") -> dict[str, Any]:
    """Return a rate to USD that is valid from `start` to just before `end`."""
    return {
        "from_currency": currency,
        "to_currency": "USD",
        "rate": Decimal(value),
        "rate_type": kind,
        "_period_from": dt.date.fromisoformat(start),
        "_period_to": dt.date.fromisoformat(end) if end else None,
    }


def rates() -> list[dict[str, Any]]:
    """Return the nine sample rates."""
    old = {"start": "2025-01-01", "end": "2026-01-01"}
    return [
        rate("EUR", "1.0850", **old), rate("EUR", "1.0920"),
        rate("GBP", "1.2650", **old), rate("GBP", "1.2710"),
        rate("JPY", "0.00667", **old), rate("JPY", "0.00672"),
        rate("USD", "1.0000", start="2020-01-01"),
        rate("EUR", "1.0800", "average", **old), rate("EUR", "1.0900", "average"),
    ]  # fmt: skip


def accounts() -> list[dict[str, Any]]:
    """Return the sample accounts."""
    lines = (
        ("1200", "Accounts Receivable", "asset"),
        ("2100", "Accounts Payable", "liability"),
        ("4100", "Product Revenue", "revenue"),
        ("4200", "Consulting Revenue", "revenue"),
        ("5100", "Office Supplies", "expense"),
        ("5200", "Travel & Entertainment", "expense"),
    )
    return [
        {
            "code": code,
            "name": name,
            "type": kind,
            "category": "operating",
            "is_active": True,
            "_period": "2026-01",
        }
        for code, name, kind in lines
    ]


def centers() -> list[dict[str, Any]]:
    """Return the sample cost centers."""
    lines = (
        ("CC-100", "Sales NA", "AMER"),
        ("CC-200", "Operations EU", "EMEA"),
        ("CC-300", "Consulting UK", "EMEA"),
    )
    return [
        {
            "code": code,
            "name": name,
            "department": name,
            "region": region,
            "is_active": True,
            "_period": "2026-01",
        }
        for code, name, region in lines
    ]


def budgets() -> list[dict[str, Any]]:
    """Return the sample budgets."""
    lines = (
        (1, "4100", "CC-100", "USD", "20000.00"),
        (2, "5100", "CC-200", "EUR", "10000.00"),
        (3, "4200", "CC-300", "GBP", "25000.00"),
        (4, "5200", "CC-100", "USD", "5000.00"),
    )
    return [
        {
            "budget_id": "BUD-001",
            "line_number": number,
            "account_code": account,
            "cost_center_code": center,
            "currency": currency,
            "amount": Decimal(amount),
            "budget_type": "original",
            "_period": "2026-01",
        }
        for number, account, center, currency, amount in lines
    ]


def sample() -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every sample table."""
    return {
        "transactions": transactions(),
        "exchange_rates": rates(),
        "accounts": accounts(),
        "cost_centers": centers(),
        "budgets": budgets(),
    }


@dataclass
class Ran:
    """What a run wrote, by the seq of its output, and what it counted."""

    rows: dict[int, list[dict[str, Any]]]
    counts: Mapping[int, OperationCounts]
    reads: list[str] = field(default_factory=list)
    frames: dict[int, DataFrame] = field(default_factory=dict)

    @property
    def last(self) -> list[dict[str, Any]]:
        """The rows of the last output."""
        return self.rows[max(self.rows)]

    def column(self, name: str, *by: str) -> dict[Any, Any]:
        """Return a column of the last output by the columns that tell its rows apart."""
        by = by or ("journal_id", "line_number")
        keys = [tuple(row[k] for k in by) for row in self.last]
        assert len(set(keys)) == len(keys), "the columns do not tell the rows apart"
        single = len(by) == 1
        return {k[0] if single else k: row[name] for k, row in zip(keys, self.last, strict=True)}


def env_of(
    spark: SparkSession,
    plan: ProjectPlan,
    data: Mapping[str, Rows],
    *,
    reads: list[str] | None = None,
    partitions: int | None = None,
    size_of: Callable[[Read], int | None] | None = None,
    counted: bool = True,
) -> Lowering:
    """Return what lowering needs, with the rows of each table given in Python."""
    from weft.pipelines.spark.counts import Counts
    from weft.pipelines.spark.frame import Lowering, RunMoment

    assert plan.period is not None
    moment = RunMoment(run_id="run-1", project_id=plan.project.id, period=plan.period, at=RUN_AT, today=RUN_AT.date())

    def read(wanted: Read) -> DataFrame:
        if reads is not None:
            reads.append(wanted.name)
        frame = in_memory(spark, wanted, data[wanted.table.name])
        return frame if partitions is None else frame.repartition(partitions)

    counts = Counts() if counted else None
    return Lowering(
        session=spark,
        read=read,
        run=moment,
        counts=counts,
        size_of=size_of,
        eager=plan.project.materialization == "eager",
    )


def in_memory(spark: SparkSession, read: Read, rows: Rows) -> DataFrame:
    """Return given rows as a read returns them: filtered by time, without deleted ones, with system columns."""
    from weft.expr.spark.types import to_spark
    from weft.pipelines.spark.system_columns import with_system_columns

    table = read.table
    types = {c.name: c.dtype for c in table.columns}
    types |= {f.name: f.dtype for f in temporal_columns(table.temporal_mode)}
    kept = [row for row in rows if is_visible(read.filter, {**dict.fromkeys(types), **row}) and not row.get("_deleted")]
    ddl = ", ".join(f"`{name}` {to_spark(dtype).simpleString()}" for name, dtype in types.items())
    df = spark.createDataFrame([tuple(row.get(name) for name in types) for row in kept], ddl)
    business = [c for c in read.columns if any(c == d.name for d in table.columns)]
    return with_system_columns(df, read.dataset, table, run_at=RUN_AT, business=business, present={})


def run(spark: SparkSession, plan: ProjectPlan, data: Mapping[str, Rows] | None = None, **options: Any) -> Ran:
    """Run a plan on given rows, without checkpoints, and return what it writes."""
    from weft.pipelines.spark.lower import lower_operation, lower_output, opened

    ran = Ran({}, {})
    env = env_of(spark, plan, {**sample(), **(data or {})}, reads=ran.reads, **options)
    frame = opened(plan, env)
    for op in plan.operations:
        frame = lower_operation(frame, op, env)
        if isinstance(op, ResolvedOutput):
            out = lower_output(frame, op, env)
            ran.frames[op.seq] = out
            ran.rows[op.seq] = [row.asDict() for row in out.collect()]
    ran.counts = env.counts.result() if env.counts is not None else {}
    return ran
