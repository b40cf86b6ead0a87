"""Scenario: given these rows, this project must make those."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from weft.core.calendar import ONE_DAY, Period
from weft.core.frozen import EMPTY, FrozenMap, freeze
from weft.core.source import NO_SOURCES, SourceMap
from weft.core.spec import Limits, Locations, Positive, ReadAs, Spec, Text, WithJsonSchema, freeze_values
from weft.errors import CODES
from weft.pipelines.model.entries import Entries, Name, check_path_name, collect_sites
from weft.pipelines.model.project import Project
from weft.pipelines.model.values import LocatedText
from weft.pipelines.model.yaml_nodes import Node, to_python

Row = FrozenMap[str, Any]
"""Column to value, as it was written: text, whole or exact number, bool, None, list or mapping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of a table: written out, in a file, or as CSV text; exactly one of them."""

    rows: tuple[Row, ...] | None = None
    file: LocatedText | None = None
    csv: LocatedText | None = None
    at: SourceMap = field(default=NO_SOURCES, compare=False, repr=False)


_Row = Annotated[Row, ReadAs(dict[str, Any], freeze_values)]
_Two = Annotated[tuple[Any, ...], Limits(min_length=2, max_length=2)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceExpected(Spec):
    """A change that an operation must make.

    `match` describes the rows that it must make it to.
    """

    operation: Positive
    change: Literal["created", "updated", "deleted"]
    match: _Row = EMPTY
    diff: Annotated[FrozenMap[str, tuple[Any, Any]], ReadAs(dict[str, _Two], freeze_values)] = EMPTY
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """What must come out; `output` is the seq of an output, ``working`` the final working set."""

    output: int | Literal["working"] | None = None
    match: Literal["exact", "subset"] = "exact"
    ordered: bool = False
    data: Rows | None = None
    count: int | None = None
    columns: Literal["exact", "partial"] = "partial"
    errors: tuple[LocatedText, ...] = ()
    pins: FrozenMap[str, int] = EMPTY
    trace: tuple[TraceExpected, ...] | None = None
    trace_match: Literal["subset", "exact"] = "subset"
    metadata: bool = False
    tolerance: Decimal | None = None
    at: SourceMap = field(default=NO_SOURCES, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scenario; `given` None means the data of the workspace.

    `project` is a name or id, or a project written inside the scenario.  `periods` are those that the
    scenario brings itself; without them the calendar of the project has them.
    """

    name: str
    project: LocatedText | Project
    period: LocatedText
    expect: Expect
    given: FrozenMap[str, Rows] | None = None
    known_at: dt.datetime | None = None
    today: dt.date | None = None
    calendar: str | None = None
    periods: tuple[Period, ...] = ()
    snapshot: bool = True
    description: str = ""
    file: Path | None = field(default=None, compare=False)
    at: SourceMap = field(default=NO_SOURCES, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRows(Spec):
    """Rows of a table: written out, in a file, or as CSV."""

    rows: tuple[dict[str, Any], ...] | None = None
    file: Text | None = None
    csv: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenExpect(WrittenRows):
    """What must come out."""

    output: Positive | Literal["working"] | None = None
    match: Literal["exact", "subset"] | None = None
    ordered: bool | None = None
    count: Annotated[int, Limits(ge=0)] | None = None
    columns: Literal["exact", "partial"] | None = None
    errors: tuple[Text, ...] | None = None
    pins: dict[str, Positive] | None = None
    trace: tuple[TraceExpected, ...] | None = None
    trace_match: Literal["subset", "exact"] | None = None
    metadata: bool | None = None
    tolerance: Annotated[int | Decimal, WithJsonSchema({"type": "number"})] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPeriod(Spec):
    """A period that the scenario brings itself; the end date is its last day."""

    identifier: Name
    level: Text
    start_date: Text
    end_date: Text
    status: Literal["open", "closed", "locked"] | None = None


_GIVEN_SCHEMA = {
    "anyOf": [
        {"const": "workspace"},
        {"type": "object", "additionalProperties": {"type": ["array", "object"]}},
    ]
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenScenario(Spec):
    """Given these rows, the project must make those."""

    name: Text
    description: str | None = None
    project: Annotated[Text | dict[str, Any], WithJsonSchema({"type": ["string", "object"]})]
    period: Name
    known_at: Text | None = None
    today: Text | None = None
    calendar: Text | None = None
    periods: tuple[WrittenPeriod, ...] | None = None
    given: Annotated[Literal["workspace"] | dict[str, WrittenRows], WithJsonSchema(_GIVEN_SCHEMA)] | None = (
        None
    )
    expect: WrittenExpect
    snapshot: bool | None = None


_SOURCES = ("rows", "file", "csv")


def build_scenario(written: WrittenScenario, entries: Entries, project: LocatedText | Project) -> Scenario:
    """Return the scenario that a file writes; `project` is the one it names or holds."""
    node = entries.node
    given = entries.part("given")
    return Scenario(
        name=entries.text("name"),
        project=project,
        period=entries.located("period") or LocatedText(""),
        expect=_expect(written.expect, entries.part("expect") or entries),
        given=None if given is None else FrozenMap(_given(given)),
        known_at=_moment(entries),
        today=_day(entries, "today"),
        calendar=entries.text_or_none("calendar"),
        periods=tuple(filter(None, (_period(period) for period in entries.parts("periods")))),
        snapshot=entries.value("snapshot", True),
        description=entries.text("description"),
        file=Path(node.file) if node.file else None,
        at=collect_sites(node),
    )


def _given(given: Entries) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    for item in given.node.pairs():
        rows = _rows(Entries(item.value, given.findings), f"table {item.name!r}")
        if rows is not None:
            found[item.name] = rows
    return found


def _rows(entries: Entries, what: str) -> Rows | None:
    said = [
        name for name in _SOURCES if entries.node.get(name) is not None and entries.value(name) is not None
    ]
    if len(said) > 1:
        entries.find("W1701", f"{what} has {said[0]!r} and {said[1]!r}", said[1], "keep one of them")
    if not said and not entries.findings.partial:
        entries.findings.add(
            "W1701",
            f"{what} has no rows",
            entries.node.head(),
            "write `rows: [...]`, `file: path` or `csv: |`",
        )
    if not said:
        return None
    rows = entries.node.get("rows")
    written = None
    if said[0] == "rows" and rows is not None:
        written = tuple(FrozenMap({i.name: _cell(i.value) for i in row.pairs()}) for row in rows.items())
    return Rows(
        rows=written,
        file=entries.located("file") if said[0] == "file" else None,
        csv=entries.located("csv") if said[0] == "csv" else None,
        at=collect_sites(entries.node),
    )


def _cell(node: Node) -> Any:
    return freeze(to_python(node))


def _expect(written: WrittenExpect, entries: Entries) -> Expect:
    says_rows = any(entries.node.get(name) is not None for name in _SOURCES)
    others = ("count", "errors", "trace", "pins")
    data = None
    if says_rows or all(entries.node.get(name) is None for name in others):
        data = _rows(entries, "'expect'")
    for said in entries.texts("errors"):
        if said.text not in CODES and not said.text.startswith(("VR-", "VAL-")):
            entries.findings.add(
                "W1701", f"there is no code {said.text!r}", said.at, "`weft explain` lists them"
            )
    return Expect(
        output=written.output,
        match=written.match or "exact",
        ordered=written.ordered or False,
        data=data,
        count=written.count,
        columns=written.columns or "partial",
        errors=entries.texts("errors"),
        pins=FrozenMap(written.pins or {}),
        # `trace:` with nothing behind it asks for no change at all.
        trace=(written.trace or ()) if entries.node.get("trace") else None,
        trace_match=written.trace_match or "subset",
        metadata=written.metadata or False,
        tolerance=None if written.tolerance is None else Decimal(written.tolerance),
        at=collect_sites(entries.node),
    )


def _day(entries: Entries, name: str) -> dt.date | None:
    said = entries.text_or_none(name)
    if said is None:
        return None
    try:
        return dt.date.fromisoformat(said)
    except ValueError:
        entries.find("W1004", f"{name!r} {said!r} is no day", name, "write for example 2026-01-31")
        return None


def _moment(entries: Entries) -> dt.datetime | None:
    said = entries.text_or_none("known_at")
    if said is None:
        return None
    try:
        found = dt.datetime.fromisoformat(said)
        return found.replace(tzinfo=dt.UTC) if found.tzinfo is None else found.astimezone(dt.UTC)
    except (ValueError, OverflowError):  # the first or last day of all, moved to UTC, is none
        entries.find(
            "W1004", f"'known_at' {said!r} is no time", "known_at", "write for example 2026-01-31T12:00:00Z"
        )
        return None


def _period(entries: Entries) -> Period | None:
    start, last = _day(entries, "start_date"), _day(entries, "end_date")
    if start is None or last is None:
        return None
    if start > last:
        entries.find(
            "W1701", f"the period ends before it starts: {start} to {last}", "end_date", "it is the last day"
        )
        return None
    check_path_name(entries, entries.text("identifier"), "identifier", "the period", prefix="period=")
    return Period(
        entries.text("identifier"),
        entries.text("level"),
        start,
        last + ONE_DAY,
        "scenario",
        entries.value("status", "open"),
    )
