"""Scenario: the rows that a project gets and the rows that it must produce.

Scenarios of a test catalogue have another form, which is converted first::

    periods: [{identifier: 2026-01, ...}]     period: 2026-01
    input: {data: {gl: {rows: [...]}}}        given: {gl: {rows: [...]}}
    expected_output: {data: {rows: [...]}}    expect: {rows: [...], match: exact}
    config: {match_mode: exact}
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from weft.core.calendar import ONE_DAY, Period
from weft.core.frozen import EMPTY, FrozenMap, freeze
from weft.core.source import NO_SOURCES, SourceMap
from weft.core.spec import Limits, Locations, Positive, ReadAs, Spec, Text, WithJsonSchema, freeze_values
from weft.errors import CODES, Diagnostic
from weft.pipelines.model.entries import Entries, Name, check_path_name, collect_sites
from weft.pipelines.model.project import Project
from weft.pipelines.model.values import LocatedText
from weft.pipelines.model.yaml_nodes import Item, Node, as_text, to_python

Row = FrozenMap[str, Any]
"""Column to value as written: string, integer or exact number, bool, None, list or mapping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of a table: inline, in a file, or as CSV; exactly one of them."""

    rows: tuple[Row, ...] | None = None
    file: LocatedText | None = None
    csv: LocatedText | None = None
    at: SourceMap = field(default=NO_SOURCES, compare=False, repr=False)


_Row = Annotated[Row, ReadAs(dict[str, Any], freeze_values)]
_Two = Annotated[tuple[Any, ...], Limits(min_length=2, max_length=2)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceExpected(Spec):
    """A change that an operation must make.

    `match` describes the rows that it must change.
    """

    operation: Positive
    change: Literal["created", "updated", "deleted"]
    match: _Row = EMPTY
    diff: Annotated[FrozenMap[str, tuple[Any, Any]], ReadAs(dict[str, _Two], freeze_values)] = EMPTY
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """The expected result; `output` is the seq of an output, ``working`` the final working set."""

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

    `project` is a name or id, or a project written inside the scenario.  `periods` are defined by the
    scenario; without them those of the calendar of the project are used.
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
    """Rows of a table: inline, in a file, or as CSV."""

    rows: tuple[dict[str, Any], ...] | None = None
    file: Text | None = None
    csv: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenExpect(WrittenRows):
    """The expected result."""

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
    """A period that the scenario defines; the end date is its last day."""

    identifier: Name
    level: Text
    start_date: Text
    end_date: Text
    status: Literal["open", "closed", "locked"] | None = None


_GIVEN_SCHEMA = {
    "anyOf": [{"const": "workspace"}, {"type": "object", "additionalProperties": {"type": ["array", "object"]}}]
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenScenario(Spec):
    """Rows that a project gets and rows that it must produce."""

    name: Text
    description: str | None = None
    project: Annotated[Text | dict[str, Any], WithJsonSchema({"type": ["string", "object"]})]
    period: Name
    known_at: Text | None = None
    today: Text | None = None
    calendar: Text | None = None
    periods: tuple[WrittenPeriod, ...] | None = None
    given: Annotated[Literal["workspace"] | dict[str, WrittenRows], WithJsonSchema(_GIVEN_SCHEMA)] | None = None
    expect: WrittenExpect
    snapshot: bool | None = None


_SOURCES = ("rows", "file", "csv")


def build_scenario(written: WrittenScenario, entries: Entries, project: LocatedText | Project) -> Scenario:
    """Return the scenario of a file; `project` is the one it names or contains."""
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
    tables: dict[str, Rows] = {}
    for item in given.node.pairs():
        rows = _rows(Entries(item.value, given.findings), f"table {item.name!r}")
        if rows is not None:
            tables[item.name] = rows
    return tables


def _rows(entries: Entries, what: str) -> Rows | None:
    given = [name for name in _SOURCES if entries.node.get(name) is not None and entries.value(name) is not None]
    if len(given) > 1:
        entries.report("W1701", f"{what} has {given[0]!r} and {given[1]!r}", given[1], "keep one of them")
    if not given and not entries.findings.partial:
        entries.findings.add(
            "W1701", f"{what} has no rows", entries.node.head(), "write `rows: [...]`, `file: path` or `csv: |`"
        )
    if not given:
        return None
    rows = entries.node.get("rows")
    written = None
    if given[0] == "rows" and rows is not None:
        written = tuple(FrozenMap({i.name: freeze(to_python(i.value)) for i in row.pairs()}) for row in rows.items())
    return Rows(
        rows=written,
        file=entries.located("file") if given[0] == "file" else None,
        csv=entries.located("csv") if given[0] == "csv" else None,
        at=collect_sites(entries.node),
    )


def _expect(written: WrittenExpect, entries: Entries) -> Expect:
    has_rows = any(entries.node.get(name) is not None for name in _SOURCES)
    others = ("count", "errors", "trace", "pins")
    data = None
    if has_rows or all(entries.node.get(name) is None for name in others):
        data = _rows(entries, "'expect'")
    for code in entries.texts("errors"):
        if code.text not in CODES and not code.text.startswith(("VR-", "VAL-")):
            entries.findings.add(
                "W1701", f"unknown error code {code.text!r}", code.at, "`weft explain` lists the codes"
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
        # `trace:` without a value expects no change at all.
        trace=(written.trace or ()) if entries.node.get("trace") else None,
        trace_match=written.trace_match or "subset",
        metadata=written.metadata or False,
        tolerance=None if written.tolerance is None else Decimal(written.tolerance),
        at=collect_sites(entries.node),
    )


def _day(entries: Entries, name: str) -> dt.date | None:
    text = entries.text_or_none(name)
    if text is None:
        return None
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        entries.report("W1004", f"{name!r} has the invalid date {text!r}", name, "write for example 2026-01-31")
        return None


def _moment(entries: Entries) -> dt.datetime | None:
    text = entries.text_or_none("known_at")
    if text is None:
        return None
    try:
        moment = dt.datetime.fromisoformat(text)
        return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)
    except (ValueError, OverflowError):  # moving the first or last representable day to UTC overflows
        entries.report(
            "W1004", f"'known_at' has the invalid time {text!r}", "known_at", "write for example 2026-01-31T12:00:00Z"
        )
        return None


def _period(entries: Entries) -> Period | None:
    start, last = _day(entries, "start_date"), _day(entries, "end_date")
    if start is None or last is None:
        return None
    if start > last:
        entries.report(
            "W1701",
            f"the period ends before it starts: {start} to {last}",
            "end_date",
            "the end date is the last day of the period",
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


_CONFIG_KEYS = {"match_mode": "match", "order_sensitive": "ordered", "validate_metadata": "metadata"}
_KNOWN_CONFIG = (*_CONFIG_KEYS, "validate_traceability", "snapshot_on_failure")
_TRACE_KEYS = {"operation_order": "operation", "change_type": "change", "row_match": "match", "expected_diff": "diff"}


def normalize_scenario(node: Node, findings: list[Diagnostic]) -> Node:
    """Return a scenario with `given` and `expect`, whichever form it has."""
    if node.get("expected_output") is not None or node.get("expected_trace") is not None:
        node = _convert_catalogue(node, findings)
    given, periods = node.get("given"), node.get("periods")
    if given is not None:
        node = node.with_value("given", given.map_values(_wrap_rows))
    if periods is not None and periods.is_list:
        texts = tuple(period.map_values(as_text) for period in periods.items())
        node = node.with_value("periods", replace(periods, value=texts))
    return node.map_values(as_text, "period", "known_at", "today")


def _wrap_rows(table: Node) -> Node:
    """Return a given table as a mapping: a list contains its rows."""
    return replace(table, kind="mapping", value=(Item("rows", table, table),)) if table.is_list else table


def _convert_catalogue(node: Node, findings: list[Diagnostic]) -> Node:
    config = {item.name: item for item in _read_config(node.get("config"), findings)}
    expected = _convert_expected(node, config, findings)
    converted = ("input", "expected_output", "expected_trace", "config")
    items = [_shorten_project(item) for item in node.pairs() if item.name not in converted]
    data = node.get("input")
    if data is not None and data.is_mapping:
        items.extend(item._replace(name="given") for item in data.pairs() if item.name == "data")
    first = _first_period(node)
    if first is not None and node.get("period") is None:
        items.append(Item("period", first, first))
    if "snapshot_on_failure" in config:
        items.append(config["snapshot_on_failure"]._replace(name="snapshot"))
    items.append(Item("expect", expected, expected))
    return replace(node, value=tuple(items))


def _convert_expected(node: Node, config: dict[str, Item], findings: list[Diagnostic]) -> Node:
    output = node.get("expected_output")
    data = output.get("data") if output is not None else None
    place = data or output or node
    parts = [*data.pairs()] if data is not None and data.is_mapping else []
    parts.extend(config[key]._replace(name=ours) for key, ours in _CONFIG_KEYS.items() if key in config)
    trace, validate = node.get("expected_trace"), config.get("validate_traceability")
    if trace is not None and trace.is_list and (validate is None or to_python(validate.value) is not False):
        entries = tuple(_rename_trace_keys(entry) for entry in trace.items())
        parts.append(Item("trace", trace, replace(trace, value=entries)))
    if not any(item.name in ("rows", "file") for item in parts) and trace is None:
        help = "write `data: {rows: [...]}` or `data: {file: path}`"
        findings.append(Diagnostic("W1003", "'expected_output' needs 'data'", help=help, at=place.head()))
    return replace(place, kind="mapping", value=tuple(parts), style="")


def _rename_trace_keys(entry: Node) -> Node:
    for theirs, ours in _TRACE_KEYS.items() if entry.is_mapping else ():
        entry = entry.rename(theirs, ours)
    return entry


def _shorten_project(item: Item) -> Item:
    """Return `project` as a name where it is ``{id, version}``; any other mapping is a whole project."""
    id = item.value.get("id") if item.name == "project" else None
    if id is not None and {i.name for i in item.value.pairs()} <= {"id", "version"}:
        return item._replace(value=id)
    return item


def _first_period(node: Node) -> Node | None:
    periods = node.get("periods")
    first = next(periods.items(), None) if periods is not None and periods.is_list else None
    identifier = first.get("identifier") if first is not None else None
    return None if identifier is None else as_text(identifier)


def _read_config(node: Node | None, findings: list[Diagnostic]) -> Iterator[Item]:
    for item in node.pairs() if node is not None and node.is_mapping else ():
        if item.name in _KNOWN_CONFIG:
            yield item
            continue
        message, help = f"'config' has no key {item.name!r}", f"its keys are {', '.join(_KNOWN_CONFIG)}"
        findings.append(Diagnostic("W1002", message, help=help, at=item.key.place()))
