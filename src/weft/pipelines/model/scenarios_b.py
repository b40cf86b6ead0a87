"""Scenarios from their files."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

from weft.core.calendar import ONE_DAY
from weft.core.frozen import FrozenMap, frozen
from weft.core.period import Period
from weft.errors import CODES
from weft.pipelines.model.entries import Entries, Findings, check_path_name, sites_of
from weft.pipelines.model.project import Project
from weft.pipelines.model.reference import Said
from weft.pipelines.model.scenario import Expect, Rows, Scenario, TraceExpected
from weft.pipelines.model.yaml_nodes import Node, plain

_SOURCES = ("rows", "file", "csv")


def build_scenario(node: Node, findings: Findings, project: Said | Project) -> Scenario:
    """Return the scenario of a canonical node; `project` is the one it names or holds."""
    entries = Entries(node, findings)
    given = entries.part("given")
    return Scenario(
        name=entries.text("name"),
        project=project,
        period=entries.said("period") or Said(""),
        expect=_expect(entries.part("expect") or entries),
        given=None if given is None else FrozenMap(_given(given)),
        known_at=_moment(entries),
        today=_day(entries, "today"),
        calendar=entries.text_or_none("calendar"),
        periods=tuple(filter(None, (_period(period) for period in entries.parts("periods")))),
        snapshot=entries.value("snapshot", True),
        description=entries.text("description"),
        file=Path(node.file) if node.file else None,
        at=sites_of(node),
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
        file=entries.said("file") if said[0] == "file" else None,
        csv=entries.said("csv") if said[0] == "csv" else None,
        at=sites_of(entries.node),
    )


def _cell(node: Node) -> Any:
    return frozen(plain(node))


def _expect(entries: Entries) -> Expect:
    output: Any = entries.value("output")
    tolerance = entries.value("tolerance")
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
        output=output if output is None or output == "working" else int(output),
        match=entries.value("match", "exact"),
        ordered=entries.value("ordered", False),
        data=data,
        count=None if entries.value("count") is None else entries.whole("count", 0),
        columns=entries.value("columns", "partial"),
        errors=entries.texts("errors"),
        pins=FrozenMap({name: int(version) for name, version in entries.value("pins", {}).items()}),
        trace=tuple(_trace(entry) for entry in entries.parts("trace")) if entries.node.get("trace") else None,
        trace_match=entries.value("trace_match", "subset"),
        metadata=entries.value("metadata", False),
        tolerance=None if tolerance is None else Decimal(tolerance),
        at=sites_of(entries.node),
    )


def _trace(entry: Entries) -> TraceExpected:
    return TraceExpected(
        operation=entry.whole("operation", 0),
        change=entry.value("change"),
        match=frozen(entry.value("match", {})),
        diff=frozen(entry.value("diff", {})),
        at=sites_of(entry.node),
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
