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
from weft.core.frozen import EMPTY, FrozenMap
from weft.core.source import NO_SOURCES
from weft.core.spec import Limits, Locations, Positive, ReadAs, Spec, Text, WithJsonSchema, freeze_values
from weft.errors import CODES, Diagnostic
from weft.pipelines.model.entries import (
    Entries,
    Findings,
    Name,
    NonBlankText,
    check_path_name,
    read_located,
    read_text,
)
from weft.pipelines.model.project import Project
from weft.pipelines.model.values import LocatedText
from weft.pipelines.model.yaml_nodes import Item, Node, as_text, to_python

Row = FrozenMap[str, Any]
"""Column to value as written: string, integer or exact number, bool, None, list or mapping."""


_Row = Annotated[Row, ReadAs(dict[str, Any], freeze_values)]
_Two = Annotated[tuple[Any, ...], Limits(min_length=2, max_length=2)]
_SOURCES = ("rows", "file", "csv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows(Spec):
    """Rows of a table: inline, in a file, or as CSV; exactly one of them."""

    rows: Annotated[tuple[Row, ...] | None, ReadAs(tuple[dict[str, Any], ...], freeze_values)] = None
    file: Annotated[LocatedText | None, ReadAs(Text, read_located)] = None
    csv: Annotated[LocatedText | None, ReadAs(str, read_located)] = None
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)


def check_rows(entries: Entries, what: str) -> None:
    """Report rows that are missing or that are given twice."""
    given = [name for name in _SOURCES if entries.value(name) is not None]
    if len(given) > 1:
        entries.report("W1701", f"{what} has {given[0]!r} and {given[1]!r}", given[1], "keep one of them")
    if not given and not entries.findings.partial:
        entries.findings.add(
            "W1701", f"{what} has no rows", entries.node.head(), "write `rows: [...]`, `file: path` or `csv: |`"
        )


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


def _decimal(value: int | Decimal, _raw: Any, _findings: Findings) -> Decimal:
    return Decimal(value)


_Number = Annotated[int | Decimal, WithJsonSchema({"type": "number"})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect(Rows):
    """The expected result.

    `output` is the seq of an output; ``working`` is the final working set.
    """

    output: Positive | Literal["working"] | None = None
    match: Literal["exact", "subset"] = "exact"
    ordered: bool = False
    count: Annotated[int, Limits(ge=0)] | None = None
    columns: Literal["exact", "partial"] = "partial"
    errors: tuple[NonBlankText, ...] = ()
    pins: Annotated[FrozenMap[str, int], ReadAs(dict[str, Positive], freeze_values)] = EMPTY
    trace: tuple[TraceExpected, ...] | None = None
    trace_match: Literal["exact", "subset"] = "subset"
    metadata: bool = False
    tolerance: Annotated[Decimal | None, ReadAs(_Number, _decimal)] = None

    @property
    def data(self) -> Rows | None:
        """The expected rows; None when something else is expected, such as a count."""
        return None if self.rows is None and self.file is None and self.csv is None else self


def check_expect(expect: Expect, entries: Entries) -> Expect:
    """Return an expected result; report invalid rows and unknown error codes."""
    has_rows = any(entries.node.get(name) is not None for name in _SOURCES)
    if has_rows or all(entries.node.get(name) is None for name in ("count", "errors", "trace", "pins")):
        check_rows(entries, "'expect'")
    for code in expect.errors:
        if code.text not in CODES and not code.text.startswith(("VR-", "VAL-")):
            entries.findings.add(
                "W1701", f"unknown error code {code.text!r}", code.at, "`weft explain` lists the codes"
            )
    # `trace:` without a value expects no change at all; without the key, changes are not compared.
    return replace(expect, trace=()) if expect.trace is None and entries.node.get("trace") else expect


def _date_key(name: str) -> ReadAs:
    """Return what reads the date under a key and reports an invalid one."""

    def read(value: str, raw: Any, findings: Findings) -> dt.date | None:
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            message = f"{name!r} has the invalid date {value!r}"
            findings.add("W1004", message, raw.node.place(), "write for example 2026-01-31")
            return None

    return ReadAs(Text, read)


def _moment(value: str, raw: Any, findings: Findings) -> dt.datetime | None:
    try:
        moment = dt.datetime.fromisoformat(value)
        return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)
    except (ValueError, OverflowError):  # moving the first or last representable day to UTC overflows
        message = f"'known_at' has the invalid time {value!r}"
        findings.add("W1004", message, raw.node.place(), "write for example 2026-01-31T12:00:00Z")
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPeriod(Spec):
    """A period that the scenario defines; the end date is its last day."""

    identifier: Name
    level: Text
    start_date: Annotated[dt.date | None, _date_key("start_date")]
    end_date: Annotated[dt.date | None, _date_key("end_date")]
    status: Literal["open", "closed", "locked"] = "open"


def _periods(written: tuple[WrittenPeriod, ...], mappings: Any, findings: Findings) -> tuple[Period, ...]:
    periods: list[Period] = []
    for period, mapping in zip(written, mappings, strict=True):
        entries, start, last = Entries(mapping.node, findings), period.start_date, period.end_date
        if start is None or last is None:
            continue  # an invalid date, which is reported
        if start > last:
            message = f"the period ends before it starts: {start} to {last}"
            entries.report("W1701", message, "end_date", "the end date is the last day of the period")
            continue
        check_path_name(entries, period.identifier, "identifier", "the period", prefix="period=")
        periods.append(Period(period.identifier, period.level, start, last + ONE_DAY, "scenario", period.status))
    return tuple(periods)


def _project(value: Any, raw: Any, _findings: Findings) -> LocatedText:
    # A project written inside the scenario is read by the rule of the scenario, with its own findings.
    return read_text(raw.node) if isinstance(value, str) else LocatedText("")


def _given(value: Any, _raw: Any, _findings: Findings) -> FrozenMap[str, Rows] | None:
    return None if isinstance(value, str) else FrozenMap(value)


_ProjectForm = Annotated[Text | dict[str, Any], WithJsonSchema({"type": ["string", "object"]})]
_GIVEN_SCHEMA = {
    "anyOf": [{"const": "workspace"}, {"type": "object", "additionalProperties": {"type": ["array", "object"]}}]
}
_GivenForm = Annotated[Literal["workspace"] | dict[str, Rows], WithJsonSchema(_GIVEN_SCHEMA)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario(Spec):
    """Rows that a project gets and rows that it must produce.

    `project` is a name or id, or a project written inside the scenario.  `periods` are defined by the
    scenario; without them those of the calendar of the project are used.  Without `given`, the project
    reads the data of the workspace.
    """

    name: Text
    description: str = ""
    project: Annotated[LocatedText | Project, ReadAs(_ProjectForm, _project)]
    period: Annotated[LocatedText, ReadAs(Name, read_located)]
    known_at: Annotated[dt.datetime | None, ReadAs(Text, _moment)] = None
    today: Annotated[dt.date | None, _date_key("today")] = None
    calendar: Text | None = None
    periods: Annotated[tuple[Period, ...], ReadAs(tuple[WrittenPeriod, ...], _periods)] = ()
    given: Annotated[FrozenMap[str, Rows] | None, ReadAs(_GivenForm, _given)] = None
    expect: Expect
    snapshot: bool = True
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)

    @property
    def file(self) -> Path | None:
        """The file of the scenario, relative to the workspace."""
        return None if self.at.whole is None or self.at.whole.file is None else Path(self.at.whole.file)


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
