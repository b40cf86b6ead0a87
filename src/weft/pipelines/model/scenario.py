"""Scenario: given these rows, this project must make those."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from weft.core.frozen import EMPTY, FrozenMap
from weft.core.period import Period
from weft.core.source import NOWHERE, Sites
from weft.pipelines.model.project import Project
from weft.pipelines.model.reference import Said

Row = FrozenMap[str, Any]
"""Column to value, as it was written: text, whole or exact number, bool, None, list or mapping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of a table: written out, in a file, or as CSV text; exactly one of them."""

    rows: tuple[Row, ...] | None = None
    file: Said | None = None
    csv: Said | None = None
    at: Sites = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceExpected:
    """A change that one operation must make to the rows that `match` describes."""

    operation: int
    change: Literal["created", "updated", "deleted"]
    match: Row = EMPTY
    diff: FrozenMap[str, tuple[Any, Any]] = EMPTY
    at: Sites = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """What must come out; `output` is the seq of an output, ``working`` the final working set."""

    output: int | Literal["working"] | None = None
    match: Literal["exact", "subset"] = "exact"
    ordered: bool = False
    data: Rows | None = None
    count: int | None = None
    columns: Literal["exact", "partial"] = "partial"
    errors: tuple[Said, ...] = ()
    pins: FrozenMap[str, int] = EMPTY
    trace: tuple[TraceExpected, ...] | None = None
    trace_match: Literal["subset", "exact"] = "subset"
    metadata: bool = False
    tolerance: Decimal | None = None
    at: Sites = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scenario; `given` None means the data of the workspace.

    `project` is a name or id, or a project written inside the scenario.  `periods` are those that the
    scenario brings itself; without them the calendar of the project has them.
    """

    name: str
    project: Said | Project
    period: Said
    expect: Expect
    given: FrozenMap[str, Rows] | None = None
    known_at: dt.datetime | None = None
    today: dt.date | None = None
    calendar: str | None = None
    periods: tuple[Period, ...] = ()
    snapshot: bool = True
    description: str = ""
    file: Path | None = field(default=None, compare=False)
    at: Sites = field(default=NOWHERE, compare=False, repr=False)
