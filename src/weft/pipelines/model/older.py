"""The two forms in which an operation is written, and the kinds of operation that older models had.

::

    {order: 10, type: delete, alias: drop zeros, parameters: {selector: "amount = 0"}}
    {seq: 10, name: drop zeros, type: delete, selector: "amount = 0", arguments: {}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

from weft.core.names import find_similar, format_list
from weft.errors import Diagnostic
from weft.pipelines.model.values import OperationType
from weft.pipelines.model.yaml_nodes import Item, Node, to_python

KINDS: tuple[str, ...] = get_args(OperationType)

REFUSED_KINDS: Mapping[str, str] = {
    "filter": "use `delete` with the opposite selector, or a selector on the operations after it",
    "where": "use `delete` with the opposite selector, or a selector on the operations after it",
    "enrich": "use `update` with `joins`; a lookup of the dataset needs no join at all",
    "join": "use `update` with `joins`: the columns are read as alias.column in its assignments",
    "lookup": "declare the lookup in the dataset and read alias.column, or use `update` with `joins`",
    "rollup": "use `aggregate`: it adds summary rows; a run for a quarter reads its months",
    "group": "use `aggregate` with `group_by` and `aggregations`",
    "summarize": "use `aggregate` with `group_by` and `aggregations`",
    "add_column": "use `update`: an assignment to a new name adds the column",
    "derive": "use `update`: an assignment to a new name adds the column",
    "compute": "use `update`: an assignment to a new name adds the column",
    "calculate": "use `update`: an assignment to a new name adds the column",
    "map": "use `update` with one assignment for each column",
    "transform": "use `update` with one assignment for each column",
    "rename": "use `update` to set the new column; `columns` of an output picks what is written",
    "load": "name the dataset as the input of the project; its resolver says where the data lies",
    "read": "name the dataset as the input of the project; its resolver says where the data lies",
    "select": "use `columns` of an output to pick columns, a selector to pick rows",
    "project": "use `columns` of an output to pick columns",
    "drop": "use `delete` for rows, `columns` of an output for columns",
    "sort": "rows have no order; an output takes `order_by`",
    "order": "rows have no order; an output takes `order_by`",
    "union": "use `append`",
    "concat": "use `append`",
    "insert": "use `append`",
    "merge": "use `append`, or an output with `mode: merge`",
    "save": "use `output`",
    "write": "use `output`",
    "export": "use `output`",
    "publish": "use `output` with `register_as_dataset`",
    "remove": "use `delete`",
    "set": "use `update`",
}
"""What to write instead of a kind of operation that other models have."""

REFUSED_KEYS: Mapping[str, str] = {
    "function": "write the aggregate as an expression: `expression: SUM(orders.amount)`",
    "output_column": "write `column: ...` beside the `expression`",
    "destinations": "an output has one `destination`: write one output for each",
    "transient": "there is no transient location: an output without `register_as_dataset` is the nearest",
    "join_type": "a runtime join is a left join; a selector or a delete drops rows without a match",
    "how": "a runtime join is a left join; a selector or a delete drops rows without a match",
    "filter": "write `selector: ...` with the rows to act on",
    "condition": "write `selector: ...` for rows, `on: ...` for a join",
    "datasource_table": "write `datasource_id: ...` and `table: ...`",
}
"""What to write instead of a key that other models have."""

_TWICE = (("order", "seq"), ("parameters", "arguments"))


def normalised_operation(node: Node, told: list[Diagnostic]) -> Node:
    """Return an operation in the canonical form, whichever of the two it has; note what contradicts itself."""
    if not node.is_mapping:
        return node
    second = any(node.get(other) is not None for other, _ in _TWICE)
    for other, ours in _TWICE:
        node = _one_of_two(node, other, ours, told)
    node = _lifted_selector(node, told)
    return _named(node, second=second)


def is_known_kind(node: Node, told: list[Diagnostic]) -> bool:
    """Whether the type of an operation is one of the five; note what to write instead."""
    said = node.get("type")
    if said is None or said.kind != "scalar" or not isinstance(to_python(said), str) or said.value in KINDS:
        return True
    kind = said.value.strip().lower()
    close = find_similar(kind, KINDS, most=1)
    if kind in REFUSED_KINDS:
        help = REFUSED_KINDS[kind]
    elif close:
        help = f"did you mean {close[0]!r}?"
    else:
        help = f"the kinds are {format_list(KINDS)}"
    told.append(Diagnostic("W1005", f"{said.value!r} is not an operation", help=help, at=said.place()))
    return False


def _one_of_two(node: Node, other: str, ours: str, told: list[Diagnostic]) -> Node:
    theirs, own = node.get(other), node.get(ours)
    if theirs is None:
        return node
    if own is None:
        return replace(
            node, value=tuple(i._replace(name=ours) if i.name == other else i for i in node.pairs())
        )
    if to_python(theirs) != to_python(own):
        _contradiction(told, other, theirs, ours, own)
    return without(node, other)


def _lifted_selector(node: Node, told: list[Diagnostic]) -> Node:
    arguments, own = node.get("arguments"), node.get("selector")
    inner = arguments.get("selector") if arguments is not None else None
    if arguments is None or inner is None:
        return node
    item = next(i for i in arguments.pairs() if i.name == "selector")
    if own is not None and to_python(own) != to_python(inner):
        _contradiction(told, "selector", inner, "selector", own)
    rest = without(arguments, "selector")
    items = [i._replace(value=rest) if i.name == "arguments" else i for i in node.pairs()]
    return replace(node, value=tuple(items if own is not None else [*items, item]))


def _contradiction(told: list[Diagnostic], other: str, theirs: Node, ours: str, own: Node) -> None:
    message = f"{other!r} and {ours!r} say different things"
    if other == ours:
        message = f"{ours!r} is said twice, differently"
    for one, two in ((theirs, own), (own, theirs)):
        help = f"keep one of them; the other is in line {two.place().line}"
        told.append(Diagnostic("W1006", message, help=help, at=one.head()))


def _named(node: Node, *, second: bool) -> Node:
    alias, name = node.get("alias"), node.get("name")
    if name is not None or (alias is None and not second):
        return node if alias is None else without(node, "alias")
    if alias is not None:
        return replace(
            node, value=tuple(i._replace(name="name") if i.name == "alias" else i for i in node.pairs())
        )
    kind, seq = node.get("type"), node.get("seq")
    said = " ".join(str(part.value) for part in (kind, seq) if part is not None and part.kind == "scalar")
    place = replace(node, kind="scalar", value=said or "operation", style="text", size=1)
    return replace(node, value=(*node.pairs(), Item("name", place, place)))


def without(node: Node, name: str) -> Node:
    """Return a mapping without one of its entries."""
    return replace(node, value=tuple(item for item in node.pairs() if item.name != name))
