"""Scenarios in the form of a catalogue, rewritten to given and expect.

::

    periods: [{identifier: 2026-01, ...}]     period: 2026-01
    input: {data: {gl: {rows: [...]}}}        given: {gl: {rows: [...]}}
    expected_output: {data: {rows: [...]}}    expect: {rows: [...], match: exact}
    config: {match_mode: exact}
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from weft.errors import Diagnostic
from weft.pipelines.model.yaml_nodes import Item, Node, as_text, to_python

_CONFIG = {
    "match_mode": "match",
    "order_sensitive": "ordered",
    "validate_metadata": "metadata",
}
_TRACE = {
    "operation_order": "operation",
    "change_type": "change",
    "row_match": "match",
    "expected_diff": "diff",
}


def scenario_form(node: Node, told: list[Diagnostic]) -> Node:
    """Return a scenario with given and expect, whichever form it has."""
    if node.get("expected_output") is not None or node.get("expected_trace") is not None:
        node = _from_catalogue(node, told)
    node = _with_rows(node)
    items = []
    for item in node.pairs():
        if item.name in ("period", "known_at", "today"):
            items.append(item._replace(value=as_text(item.value)))
        elif item.name == "periods" and item.value.is_list:
            items.append(item._replace(value=_periods(item.value)))
        else:
            items.append(item)
    return replace(node, value=tuple(items))


def _periods(node: Node) -> Node:
    def texts(period: Node) -> Node:
        if not period.is_mapping:
            return period
        return replace(period, value=tuple(i._replace(value=as_text(i.value)) for i in period.pairs()))

    return replace(node, value=tuple(texts(period) for period in node.items()))


def _with_rows(node: Node) -> Node:
    """Return a scenario whose given tables are mappings: a list there is their rows."""
    given = node.get("given")
    if given is None or not given.is_mapping:
        return node
    tables = tuple(
        item._replace(value=replace(item.value, kind="mapping", value=(Item("rows", item.key, item.value),)))
        if item.value.is_list
        else item
        for item in given.pairs()
    )
    changed = replace(given, value=tables)
    return replace(
        node, value=tuple(i._replace(value=changed) if i.name == "given" else i for i in node.pairs())
    )


def _from_catalogue(node: Node, told: list[Diagnostic]) -> Node:
    config = {item.name: item for item in _entries(node.get("config"), told, "'config'", _KNOWN_CONFIG)}
    expected = _expected(node, config, told)
    taken = ("input", "expected_output", "expected_trace", "config", "project")
    items = [item for item in node.pairs() if item.name not in taken]
    items.extend(_project(node))
    given = _entry(_value(node, "input"), "data")
    if given is not None:
        items.append(given._replace(name="given"))
    first = _first_period(node)
    if first is not None and node.get("period") is None:
        items.append(Item("period", first, first))
    if "snapshot_on_failure" in config:
        items.append(config["snapshot_on_failure"]._replace(name="snapshot"))
    items.append(Item("expect", expected, expected))
    return replace(node, value=tuple(items))


_KNOWN_CONFIG = (*_CONFIG, "validate_traceability", "snapshot_on_failure")


def _expected(node: Node, config: dict[str, Item], told: list[Diagnostic]) -> Node:
    output = _value(node, "expected_output")
    block = output.get("data") if output is not None else None
    place = block or output or node
    parts = [*block.pairs()] if block is not None and block.is_mapping else []
    parts.extend(config[key]._replace(name=ours) for key, ours in _CONFIG.items() if key in config)
    trace = node.get("expected_trace")
    said = config.get("validate_traceability")
    if trace is not None and trace.is_list and (said is None or to_python(said.value) is not False):
        entries = tuple(_trace_entry(entry, told) for entry in trace.items())
        parts.append(Item("trace", trace, replace(trace, value=entries)))
    if not any(item.name in ("rows", "file") for item in parts) and trace is None:
        help = "write `data: {rows: [...]}` or `data: {file: path}`"
        told.append(Diagnostic("W1003", "'expected_output' needs 'data'", help=help, at=place.head()))
    return replace(place, kind="mapping", value=tuple(parts), style="")


def _trace_entry(entry: Node, told: list[Diagnostic]) -> Node:
    items = [i._replace(name=_TRACE.get(i.name, i.name)) for i in _entries(entry, told, "", None)]
    return replace(entry, kind="mapping", value=tuple(items)) if entry.is_mapping else entry


def _project(node: Node) -> Iterable[Item]:
    item = next((i for i in node.pairs() if i.name == "project"), None)
    if item is None:
        return ()
    named = item.value.get("id")
    # {id, version} names a project of the workspace; everything else is one written out.
    if named is not None and {i.name for i in item.value.pairs()} <= {"id", "version"}:
        return (item._replace(value=named),)
    return (item,)


def _first_period(node: Node) -> Node | None:
    periods = node.get("periods")
    first = next(periods.items(), None) if periods is not None and periods.is_list else None
    found = first.get("identifier") if first is not None else None
    return None if found is None else as_text(found)


def _value(node: Node, name: str) -> Node | None:
    return node.get(name)


def _entry(node: Node | None, name: str) -> Item | None:
    if node is None or not node.is_mapping:
        return None
    return next((item for item in node.pairs() if item.name == name), None)


def _entries(
    node: Node | None, told: list[Diagnostic], noun: str, allowed: tuple[str, ...] | None
) -> Iterable[Item]:
    if node is None or not node.is_mapping:
        return ()
    for item in node.pairs():
        if allowed is not None and item.name not in allowed:
            help = f"its keys are {', '.join(allowed)}"
            told.append(
                Diagnostic("W1002", f"{noun} has no key {item.name!r}", help=help, at=item.key.place())
            )
    return tuple(item for item in node.pairs() if allowed is None or item.name in allowed)
