"""Short and alternative forms of files, rewritten to the canonical form that all later code reads.

::

    project: gl_reporting                     name: gl_reporting
    input: gl@3                               input_dataset_id: gl
                                              input_dataset_version: 3
    dataset: exchange_rates                   dataset_id: exchange_rates
    expression: {source: "a + b"}             expression: "a + b"

    {order: 10, type: delete, alias: drop zeros, parameters: {selector: "amount = 0"}}
    {seq: 10, name: drop zeros, type: delete, selector: "amount = 0", arguments: {}}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal, get_args

from weft.core.names import suggest
from weft.errors import Diagnostic
from weft.pipelines.model.scenario import normalize_scenario
from weft.pipelines.model.values import PINNED, OperationType
from weft.pipelines.model.yaml_nodes import Item, Node, as_text, scalar_source, to_python

Kind = Literal["settings", "calendar", "datasource", "resolver", "dataset", "project", "scenario"]
KINDS: tuple[Kind, ...] = get_args(Kind)
OPERATION_TYPES: tuple[str, ...] = get_args(OperationType)

_EXPRESSIONS = ("selector", "on", "expression", "when", "source_selector")
_ALTERNATIVES = (("order", "seq"), ("parameters", "arguments"))
"""Keys of the alternative form of an operation, each with its canonical name."""

_OTHER_KINDS: tuple[tuple[str, str], ...] = (
    ("filter where", "use `delete` with the opposite selector, or a selector on the operations after it"),
    ("enrich", "use `update` with `joins`; a lookup of the dataset needs no join at all"),
    ("join", "use `update` with `joins`: the columns are read as alias.column in its assignments"),
    ("lookup", "declare the lookup in the dataset and read alias.column, or use `update` with `joins`"),
    ("rollup", "use `aggregate`: it adds summary rows; a run for a quarter reads its months"),
    ("group summarize", "use `aggregate` with `group_by` and `aggregations`"),
    ("add_column derive compute calculate", "use `update`: an assignment to a new name adds the column"),
    ("map transform", "use `update` with one assignment for each column"),
    ("rename", "use `update` to set the new column; list it in `columns` of an output"),
    ("load read", "name the dataset as the input of the project; its resolver locates the data"),
    ("select", "use `columns` of an output to pick columns, a selector to pick rows"),
    ("project", "use `columns` of an output to pick columns"),
    ("drop", "use `delete` for rows, `columns` of an output for columns"),
    ("sort order", "rows have no order; an output takes `order_by`"),
    ("union concat insert", "use `append`"),
    ("merge", "use `append`, or an output with `mode: merge`"),
    ("save write export", "use `output`"),
    ("publish", "use `output` with `register_as_dataset`"),
    ("remove", "use `delete`"),
    ("set", "use `update`"),
)
REFUSED_KINDS: Mapping[str, str] = {kind: help for kinds, help in _OTHER_KINDS for kind in kinds.split()}
"""What to write instead of an operation type that other tools have."""

REFUSED_KEYS: Mapping[str, str] = {
    "function": "write the aggregate as an expression: `expression: SUM(orders.amount)`",
    "output_column": "write `column: ...` beside the `expression`",
    "destinations": "an output has one `destination`: write one output for each",
    "transient": "write an output without `register_as_dataset`: its rows do not become a dataset",
    "join_type": "a runtime join is a left join; a selector or a delete drops rows without a match",
    "how": "a runtime join is a left join; a selector or a delete drops rows without a match",
    "filter": "write `selector: ...` with the rows to act on",
    "condition": "write `selector: ...` for rows, `on: ...` for a join",
    "datasource_table": "write `datasource_id: ...` and `table: ...`",
}
"""What to write instead of a key that other tools have."""


def unwrap_root(root: Node, kind: Kind, findings: list[Diagnostic]) -> Node:
    """Return the mapping of an entity: the value of its root key, or the whole file."""
    if not root.is_mapping or kind == "settings":
        return root
    inner = root.get(kind)
    if inner is None:
        _report_other_kind(root, kind, findings)
        return root
    if not inner.is_mapping:
        # The flat form: `project: gl_reporting` at the top, with the other keys beside it.
        return root.rename(kind, "name")
    for item in root.pairs():
        if item.name != kind:
            message = f"unexpected key {item.name!r} next to '{kind}:'"
            help = f"indent it below '{kind}:', or remove it"
            findings.append(Diagnostic("W1002", message, help=help, at=item.key.place()))
    return inner


def _report_other_kind(root: Node, kind: Kind, findings: list[Diagnostic]) -> None:
    items = tuple(root.pairs())
    if len(items) == 1 and items[0].name in KINDS and items[0].value.is_mapping:
        message = f"the file contains a {items[0].name}, and this folder is for {kind}s"
        help = f"move the file to {items[0].name}s/, or start it with '{kind}:'"
        findings.append(Diagnostic("W1002", message, help=help, at=items[0].key.place()))


def expand_short_forms(node: Node, kind: Kind, findings: list[Diagnostic]) -> Node:
    """Return the mapping of an entity in the canonical form."""
    form = _FORMS.get(kind)
    return node if form is None or not node.is_mapping else form(node, findings)


def _expand_project(node: Node, findings: list[Diagnostic]) -> Node:
    node = _expand_reference(node, "input_dataset_id", "input", "input_dataset_version", findings)
    node = _change(node, "selectors", lambda inner: inner.map_values(_expand_expression))
    return _change_each(node, "operations", lambda op: _expand_operation(op, findings))


def _expand_operation(node: Node, findings: list[Diagnostic]) -> Node:
    # Noted before the keys are renamed: only the alternative form may leave the name out.
    is_alternative = any(node.get(other) is not None for other, _ in _ALTERNATIVES)
    for other, ours in _ALTERNATIVES:
        node = _choose_key(node, other, ours, findings)
    node = _set_name(_lift_selector(node, findings), is_alternative=is_alternative)
    node = _change(node.map_values(as_text, "name"), "arguments", lambda inner: _expand_arguments(inner, findings))
    return node.map_values(_expand_expression, *_EXPRESSIONS)


def _choose_key(node: Node, other: str, ours: str, findings: list[Diagnostic]) -> Node:
    """Return an operation with the canonical key; different values under both keys are an error."""
    theirs, own = node.get(other), node.get(ours)
    if theirs is None:
        return node
    if own is None:
        return node.rename(other, ours)
    if to_python(theirs) != to_python(own):
        _report_contradiction(findings, f"{other!r} and {ours!r} have different values", theirs, own)
    return node.without(other)


def _lift_selector(node: Node, findings: list[Diagnostic]) -> Node:
    """Return an operation with the selector of its arguments at the top level."""
    arguments, own = node.get("arguments"), node.get("selector")
    inner = arguments.get("selector") if arguments is not None else None
    if arguments is None or inner is None:
        return node
    item = next(i for i in arguments.pairs() if i.name == "selector")
    if own is not None and to_python(own) != to_python(inner):
        _report_contradiction(findings, "'selector' is given twice with different values", inner, own)
    node = node.with_value("arguments", arguments.without("selector"))
    return node if own is not None else replace(node, value=(*node.pairs(), item))


def _report_contradiction(findings: list[Diagnostic], message: str, first: Node, second: Node) -> None:
    for node, other in ((first, second), (second, first)):
        help = f"keep one of them; the other is in line {other.place().line}"
        findings.append(Diagnostic("W1006", message, help=help, at=node.head()))


def _set_name(node: Node, *, is_alternative: bool) -> Node:
    """Return an operation with a name: its alias or, in the alternative form, its type and seq."""
    alias, name = node.get("alias"), node.get("name")
    if name is not None or (alias is None and not is_alternative):
        return node if alias is None else node.without("alias")
    if alias is not None:
        return node.rename("alias", "name")
    parts = (node.get("type"), node.get("seq"))
    text = " ".join(str(part.value) for part in parts if part is not None and part.kind == "scalar")
    name = node.scalar(text or "operation")
    return replace(node, value=(*node.pairs(), Item("name", name, name)))


def is_known_type(node: Node, findings: list[Diagnostic]) -> bool:
    """Whether the type of an operation is one of the five; report what to write instead."""
    type_node = node.get("type")
    # A missing type, or one that is not a string, is reported by pydantic with the keys of an operation.
    if type_node is None or type_node.kind != "scalar" or not isinstance(to_python(type_node), str):
        return True
    if type_node.value in OPERATION_TYPES:
        return True
    name = type_node.value.strip().lower()
    help = REFUSED_KINDS.get(name) or suggest(name, OPERATION_TYPES, "the types are", most=1)
    message = f"unknown operation type {type_node.value!r}"
    findings.append(Diagnostic("W1005", message, help=help, at=type_node.place()))
    return False


def _expand_arguments(node: Node, findings: list[Diagnostic]) -> Node:
    def expand_dataset(inner: Node) -> Node:
        return _expand_reference(inner, "dataset_id", "dataset", "dataset_version", findings)

    def expand_source(inner: Node) -> Node:
        if inner.kind == "scalar" and isinstance(to_python(inner), str):
            inner = replace(inner, kind="mapping", value=(Item("dataset_id", inner, inner),))
        return expand_dataset(inner)

    def expand_expressions(inner: Node) -> Node:
        return inner.map_values(_expand_expression, *_EXPRESSIONS)

    node = _change_each(node, "joins", lambda inner: expand_expressions(expand_dataset(inner)))
    node = _change_each(node, "assignments", expand_expressions)
    node = _change_each(node, "aggregations", expand_expressions)
    node = _change(node, "aggregation", lambda inner: _change_each(inner, "aggregations", expand_expressions))
    node = _change(node, "source", expand_source)
    node = _change(node, "columns", lambda inner: inner.map_values(_expand_expression))
    node = _change(node, "destination", lambda inner: _expand_datasource(inner, findings))
    return expand_expressions(node)


def _expand_dataset(node: Node, findings: list[Diagnostic]) -> Node:
    def expand_target(inner: Node) -> Node:
        kind = inner.get("type")
        if kind is None or kind.value != "dataset":
            return inner
        inner = _expand_reference(inner, "id", "dataset_id", None, findings)
        return _expand_reference(inner, "id", "dataset", "version", findings)

    node = _expand_reference(node, "resolver_id", "resolver", None, findings)
    return _change_each(node, "lookups", lambda lookup: _change(lookup, "target", expand_target))


def _expand_resolver(node: Node, findings: list[Diagnostic]) -> Node:
    def expand_rule(rule: Node) -> Node:
        rule = _change(rule, "strategy", lambda inner: _expand_datasource(inner, findings))
        return rule.map_values(_expand_expression, *_EXPRESSIONS)

    return _change_each(node, "rules", expand_rule)


def _expand_calendar(node: Node, findings: list[Diagnostic]) -> Node:
    # The identifier of a year is written as 2026, which YAML reads as a number.
    node = _change_each(node, "periods", lambda period: period.map_values(as_text, "identifier", "parent"))
    return _expand_reference(node, "name", "id", None, findings) if node.get("name") is None else node


def _expand_settings(node: Node, findings: list[Diagnostic]) -> Node:  # noqa: ARG001  # one signature for every kind
    # Settings of Spark are strings, also `spark.sql.shuffle.partitions: 8`.
    return _change(node, "spark", lambda spark: _change(spark, "conf", lambda conf: conf.map_values(as_text)))


def _expand_datasource(node: Node, findings: list[Diagnostic]) -> Node:
    return _expand_reference(node, "datasource_id", "datasource", None, findings)


def _expand_reference(node: Node, key: str, short: str, version: str | None, findings: list[Diagnostic]) -> Node:
    """Return a mapping with its reference under `key` and the version of ``name@3`` under `version`."""
    if not node.is_mapping:
        return node
    value, short_value = node.get(key), node.get(short)
    if short_value is not None and value is not None:
        if to_python(value) != to_python(short_value):
            message = f"{key!r} and {short!r} have different values"
            help = f"keep one of them; the other is in line {value.place().line}"
            findings.append(Diagnostic("W1006", message, help=help, at=short_value.head()))
        node = node.without(short)
    elif short_value is not None:
        value = short_value
        node = node.rename(short, key)
    return node if value is None or version is None else _split_version(node, key, value, version, findings)


def _split_version(node: Node, key: str, value: Node, version: str, findings: list[Diagnostic]) -> Node:
    match = PINNED.fullmatch(value.value) if value.kind == "scalar" and isinstance(to_python(value), str) else None
    if match is None:
        return node
    # Both parts keep their own location, so that an error can point at the name or at the version.
    whole = scalar_source(value)
    name, pin = (whole.inner(value.value, *match.span(group)) for group in (1, 2))
    pinned = replace(value, value=match[2], start=pin.start, end=pin.end, style="")
    node = node.with_value(key, replace(value, value=match[1], start=name.start, end=name.end, style="text"))
    other = node.get(version)
    if other is None:
        return replace(node, value=(*node.pairs(), Item(version, pinned, pinned)))
    if to_python(other) == to_python(pinned):
        return node
    message = f"{value.value!r} pins version {match[2]}, but {version!r} is {other.value}"
    findings.append(Diagnostic("W1008", message, help="keep one of them", at=other.head()))
    return node.with_value(version, pinned)


def _change(node: Node, name: str, change: Callable[[Node], Node]) -> Node:
    """Return a mapping with the mapping or scalar under a name changed; a list stays as it is."""
    inner = node.get(name)
    return node if inner is None or inner.is_list else node.with_value(name, change(inner))


def _change_each(node: Node, name: str, change: Callable[[Node], Node]) -> Node:
    """Return a mapping with each mapping of the list under a name changed."""
    parts = node.get(name)
    if parts is None or not parts.is_list:
        return node
    changed = tuple(change(part) if part.is_mapping else part for part in parts.items())
    return node.with_value(name, replace(parts, value=changed))


def _expand_expression(node: Node) -> Node:
    """Return an expression as the string it was written as: a string, a number, or ``{source: string}``."""
    if node.is_mapping and [item.name for item in node.pairs()] == ["source"]:
        node = node.value[0].value
    return as_text(node) if node.kind == "scalar" and to_python(node) is not None else node


_FORMS: Mapping[Kind, Callable[[Node, list[Diagnostic]], Node]] = {
    "settings": _expand_settings,
    "calendar": _expand_calendar,
    "resolver": _expand_resolver,
    "dataset": _expand_dataset,
    "project": _expand_project,
    "scenario": normalize_scenario,
}
