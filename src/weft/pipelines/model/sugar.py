"""Short forms, written out: what every reader of a file after this module sees is the canonical form.

::

    project: gl_reporting                     name: gl_reporting
    input: gl@3                               input_dataset_id: gl
                                              input_dataset_version: 3
    dataset: exchange_rates                   dataset_id: exchange_rates
    expression: {source: "a + b"}             expression: "a + b"
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

from weft.errors import Diagnostic
from weft.pipelines.model.older import normalised_operation, without
from weft.pipelines.model.scenario_form import scenario_form
from weft.pipelines.model.yaml_nodes import Item, Node, as_text, scalar_source, to_python

Kind = Literal["settings", "calendar", "datasource", "resolver", "dataset", "project", "scenario"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_PINNED = re.compile(r"(.*\S)@([1-9][0-9]{0,8})")
_EXPRESSIONS = frozenset({"selector", "on", "expression", "when", "source_selector"})


def unwrap_root(root: Node, kind: Kind, told: list[Diagnostic]) -> Node:
    """Return the mapping of an entity: below its root key, beside a name there, or the whole file."""
    if not root.is_mapping or kind == "settings":
        return root
    inner = root.get(kind)
    if inner is None:
        _another_kind(root, kind, told)
        return root
    if not inner.is_mapping:
        return replace(
            root, value=tuple(i._replace(name="name") if i.name == kind else i for i in root.pairs())
        )
    told.extend(
        Diagnostic(
            "W1002",
            f"{item.name!r} stands beside '{kind}:'",
            help=f"indent it below '{kind}:', or leave it out",
            at=item.key.place(),
        )
        for item in root.pairs()
        if item.name != kind
    )
    return inner


def _another_kind(root: Node, kind: Kind, told: list[Diagnostic]) -> None:
    items = tuple(root.pairs())
    if len(items) == 1 and items[0].name in KINDS and items[0].value.is_mapping:
        told.append(
            Diagnostic(
                "W1002",
                f"this folder holds {kind}s, and the file holds a {items[0].name}",
                help=f"move the file to {items[0].name}s/, or start it with '{kind}:'",
                at=items[0].key.place(),
            )
        )


def expand_short_forms(node: Node, kind: Kind, told: list[Diagnostic]) -> Node:
    """Return the mapping of an entity with every short form written out."""
    if not node.is_mapping:
        return node
    return _FORMS[kind](node, told)


def _project(node: Node, told: list[Diagnostic]) -> Node:
    node = reference(node, "input_dataset_id", "input", "input_dataset_version", told)
    node = _changed(node, "selectors", _expression_values)
    return _each(node, "operations", lambda op: _operation(op, told))


def _operation(node: Node, told: list[Diagnostic]) -> Node:
    node = normalised_operation(node, told)
    node = _changed(_texts(node, "name"), "arguments", lambda inner: _arguments(inner, told))
    return _expressions(node)


def _arguments(node: Node, told: list[Diagnostic]) -> Node:
    def source(inner: Node) -> Node:
        if inner.kind == "scalar" and isinstance(to_python(inner), str):
            inner = replace(inner, kind="mapping", value=(Item("dataset_id", inner, inner),))
        return reference(inner, "dataset_id", "dataset", "dataset_version", told)

    def join(inner: Node) -> Node:
        return _expressions(reference(inner, "dataset_id", "dataset", "dataset_version", told))

    node = _each(node, "joins", join)
    node = _each(node, "assignments", _expressions)
    node = _each(node, "aggregations", _expressions)
    node = _changed(node, "aggregation", lambda inner: _each(inner, "aggregations", _expressions))
    node = _changed(node, "source", source)
    node = _changed(node, "columns", _expression_values)
    node = _changed(
        node, "destination", lambda inner: reference(inner, "datasource_id", "datasource", None, told)
    )
    return _expressions(node)


def _dataset(node: Node, told: list[Diagnostic]) -> Node:
    def target(inner: Node) -> Node:
        kind = inner.get("type")
        if kind is None or kind.value != "dataset":
            return inner
        inner = reference(inner, "id", "dataset_id", None, told)
        return reference(inner, "id", "dataset", "version", told)

    node = reference(node, "resolver_id", "resolver", None, told)
    return _each(node, "lookups", lambda lookup: _changed(lookup, "target", target))


def _resolver(node: Node, told: list[Diagnostic]) -> Node:
    def strategy(inner: Node) -> Node:
        return reference(inner, "datasource_id", "datasource", None, told)

    return _each(node, "rules", lambda rule: _expressions(_changed(rule, "strategy", strategy)))


def _calendar(node: Node, told: list[Diagnostic]) -> Node:
    node = _each(node, "periods", lambda period: _texts(period, "identifier", "parent"))
    return reference(node, "name", "id", None, told) if node.get("name") is None else node


def _settings(node: Node, told: list[Diagnostic]) -> Node:  # noqa: ARG001  # one signature for every kind
    def conf(inner: Node) -> Node:
        if not inner.is_mapping:
            return inner
        return replace(inner, value=tuple(i._replace(value=as_text(i.value)) for i in inner.pairs()))

    return _changed(node, "spark", lambda spark: _changed(spark, "conf", conf))


def _same(node: Node, told: list[Diagnostic]) -> Node:  # noqa: ARG001  # one signature for every kind
    return node


def reference(node: Node, key: str, short: str, version: str | None, told: list[Diagnostic]) -> Node:
    """Return a mapping whose reference stands under `key`, its version split off from ``name@3``."""
    if not node.is_mapping:
        return node
    said, brief = node.get(key), node.get(short)
    if brief is not None and said is not None:
        if to_python(said) != to_python(brief):
            told.append(
                Diagnostic(
                    "W1006",
                    f"{key!r} and {short!r} say different things",
                    help=f"keep one of them; the other is in line {said.place().line}",
                    at=brief.head(),
                )
            )
        node = without(node, short)
    elif brief is not None:
        said = brief
        node = replace(
            node, value=tuple(i._replace(name=key) if i.name == short else i for i in node.pairs())
        )
    return node if said is None or version is None else _split_pin(node, key, said, version, told)


def _split_pin(node: Node, key: str, said: Node, version: str, told: list[Diagnostic]) -> Node:
    found = (
        _PINNED.fullmatch(said.value) if said.kind == "scalar" and isinstance(to_python(said), str) else None
    )
    if found is None:
        return node
    place = scalar_source(said)
    name, pin = (place.inner(said.value, *found.span(group)) for group in (1, 2))
    named = replace(said, value=found[1], start=name.start, end=name.end, style="text")
    pinned = replace(said, value=found[2], start=pin.start, end=pin.end, style="")
    items = [i._replace(value=named) if i.name == key else i for i in node.pairs()]
    other = node.get(version)
    if other is None:
        items.append(Item(version, pinned, pinned))
    elif to_python(other) != to_python(pinned):
        told.append(
            Diagnostic(
                "W1008",
                f"{said.value!r} pins version {found[2]}, and {version!r} says {other.value}",
                help="keep one of them",
                at=other.head(),
            )
        )
        items = [i._replace(value=pinned) if i.name == version else i for i in items]
    return replace(node, value=tuple(items))


def _changed(node: Node, name: str, change: Callable[[Node], Node]) -> Node:
    """Return a mapping with the mapping or scalar under a name changed; lists and nothing stay."""
    if not node.is_mapping or node.get(name) is None:
        return node
    return replace(
        node,
        value=tuple(
            item._replace(value=change(item.value)) if item.name == name and not item.value.is_list else item
            for item in node.pairs()
        ),
    )


def _each(node: Node, name: str, change: Callable[[Node], Node]) -> Node:
    """Return a mapping with each mapping in the list under a name changed."""
    found = node.get(name)
    if found is None or not found.is_list:
        return node
    parts = replace(found, value=tuple(change(part) if part.is_mapping else part for part in found.items()))
    return replace(node, value=tuple(i._replace(value=parts) if i.name == name else i for i in node.pairs()))


def _expressions(node: Node) -> Node:
    return (
        replace(
            node,
            value=tuple(
                item._replace(value=expression(item.value)) if item.name in _EXPRESSIONS else item
                for item in node.pairs()
            ),
        )
        if node.is_mapping
        else node
    )


def _expression_values(node: Node) -> Node:
    if not node.is_mapping:
        return node
    return replace(node, value=tuple(item._replace(value=expression(item.value)) for item in node.pairs()))


def expression(node: Node) -> Node:
    """Return an expression as the text it was written as: a text, a number, or ``{source: text}``."""
    if node.is_mapping and [item.name for item in node.pairs()] == ["source"]:
        node = node.value[0].value
    return as_text(node) if node.kind == "scalar" and to_python(node) is not None else node


def _texts(node: Node, *names: str) -> Node:
    return (
        replace(
            node,
            value=tuple(i._replace(value=as_text(i.value)) if i.name in names else i for i in node.pairs()),
        )
        if node.is_mapping
        else node
    )


_FORMS: dict[Kind, Callable[[Node, list[Diagnostic]], Node]] = {
    "settings": _settings,
    "calendar": _calendar,
    "datasource": _same,
    "resolver": _resolver,
    "dataset": _dataset,
    "project": _project,
    "scenario": scenario_form,
}
