"""Operations from canonical nodes; their shape is known to fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.core.frozen import FrozenMap
from weft.pipelines.model.datasets_b import as_of
from weft.pipelines.model.entries import Entries, Findings, expression_of, sites_of
from weft.pipelines.model.operation import (
    Aggregate,
    Aggregation,
    Append,
    Arguments,
    Assignment,
    Delete,
    Destination,
    Operation,
    Output,
    RuntimeJoin,
    Update,
)
from weft.pipelines.model.reference import Said
from weft.pipelines.model.words import OperationType
from weft.pipelines.model.yaml_nodes import Node


def build_operation(node: Node, findings: Findings) -> Operation:
    """Return the operation of a canonical node; expressions without a character are noted."""
    entries = Entries(node, findings)
    kind: OperationType = entries.value("type")
    seq = entries.whole("seq", 0)
    return Operation(
        id=entries.text("id", f"op-{seq}"),
        seq=seq,
        name=entries.text("name"),
        type=kind,
        arguments=_ARGUMENTS[kind](entries.part("arguments") or entries),
        selector=entries.said("selector"),
        description=entries.text("description"),
        checkpoint=entries.value("checkpoint", False),
        at=sites_of(node),
    )


def _update(arguments: Entries) -> Update:
    return Update(
        joins=tuple(_join(join) for join in arguments.parts("joins")),
        assignments=tuple(
            Assignment(a.said("column") or Said(""), a.expression("expression"))
            for a in arguments.parts("assignments")
        ),
    )


def _join(join: Entries) -> RuntimeJoin:
    return RuntimeJoin(
        alias=join.said("alias") or Said(""),
        dataset=join.reference("dataset_id", "dataset_version"),
        on=join.expression("on"),
        table=join.text_or_none("table"),
        as_of=as_of(join),
        on_multiple=join.value("on_multiple", "error"),
        order_by=tuple(said.text for said in join.texts("order_by")),
        broadcast=join.value("broadcast"),
        nulls_equal=join.value("nulls_equal", False),
        at=sites_of(join.node),
    )


def _aggregate(arguments: Entries) -> Aggregate:
    return Aggregate(
        group_by=arguments.texts("group_by"),
        aggregations=tuple(
            Aggregation(a.said("column") or Said(""), a.expression("expression"))
            for a in arguments.parts("aggregations")
        ),
        include_summaries=arguments.value("include_summaries", False),
    )


def _append(arguments: Entries) -> Append:
    source = arguments.part("source") or arguments
    inner = arguments.part("aggregation")
    columns = None
    if arguments.part("columns") is not None:
        columns = FrozenMap(
            {
                item.name: expression_of(item.value, f"the expression of {item.name!r}", arguments.findings)
                for item in arguments.pairs("columns")
            }
        )
    return Append(
        source=source.reference("dataset_id", "dataset_version"),
        source_selector=arguments.said("source_selector"),
        aggregation=None if inner is None else _aggregate(inner),
        columns=columns,
    )


def _delete(arguments: Entries) -> Delete:  # noqa: ARG001  # a delete has no arguments
    return Delete()


def _output(arguments: Entries) -> Output:
    to = arguments.part("destination") or arguments
    return Output(
        destination=Destination(
            datasource=to.text_or_none("datasource_id"),
            table=to.text_or_none("table"),
            schema=to.text_or_none("schema"),
            path=to.text_or_none("path"),
            format=to.value("format"),
            at=sites_of(to.node),
        ),
        columns=arguments.texts("columns") if arguments.node.get("columns") is not None else None,
        include_deleted=arguments.value("include_deleted", False),
        register_as_dataset=arguments.text_or_none("register_as_dataset"),
        mode=arguments.value("mode", "replace_period"),
        order_by=arguments.texts("order_by"),
        escape_formulas=arguments.value("escape_formulas", False),
    )


_ARGUMENTS: Mapping[OperationType, Callable[[Entries], Arguments]] = {
    "update": _update,
    "aggregate": _aggregate,
    "append": _append,
    "delete": _delete,
    "output": _output,
}
