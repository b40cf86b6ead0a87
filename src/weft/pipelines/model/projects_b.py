"""Projects from their files."""

from __future__ import annotations

from weft.core.frozen import FrozenMap
from weft.pipelines.model.entries import (
    WORD,
    Entries,
    Findings,
    check_path_name,
    expression_of,
    identity,
    sites_of,
)
from weft.pipelines.model.operation import Operation
from weft.pipelines.model.operations_b import build_operation
from weft.pipelines.model.project import DEFAULT_CHECKPOINT_EVERY, Project
from weft.pipelines.model.reference import Said
from weft.pipelines.model.yaml_nodes import Node


def build_project(node: Node, findings: Findings) -> Project:
    """Return the project of a canonical node; what breaks a rule is noted."""
    entries = Entries(node, findings)
    id, name = identity(entries, "project")
    # Drafts write to <sandbox>/<name>.
    check_path_name(entries, name, "name" if entries.said("name") else "id", "the project name")
    return Project(
        id=id,
        name=name,
        version=entries.whole("version", 1),
        status=entries.value("status", "draft"),
        input=entries.reference("input_dataset_id", "input_dataset_version"),
        operations=_operations(entries),
        selectors=FrozenMap(_selectors(entries)),
        resolver_overrides=FrozenMap(
            {item.name: str(item.value.value) for item in entries.pairs("resolver_overrides")}
        ),
        materialization=entries.value("materialization", "eager"),
        visibility=entries.value("visibility", "private"),
        owner=entries.text("owner"),
        calendar=entries.text("calendar", "gregorian"),
        checkpoint_every=entries.whole("checkpoint_every", DEFAULT_CHECKPOINT_EVERY),
        description=entries.text("description"),
        at=sites_of(node),
    )


def _operations(entries: Entries) -> tuple[Operation, ...]:
    first: dict[int, Operation] = {}
    named: dict[str, Operation] = {}
    found: list[Operation] = []
    for part in entries.parts("operations"):
        operation = build_operation(part.node, entries.findings)
        found.append(operation)
        other = first.setdefault(operation.seq, operation)
        if other is not operation:
            help = f"{_shown(other, 'seq')} has it: give each its own"
            part.find("W1009", f"seq {operation.seq} is used twice", "seq", help)
        if not part.node.text:  # the store holds projects from before ids were compared
            continue
        other = named.setdefault(operation.id, operation)
        if other is not operation and (part.node.get("id") is not None or other.seq != operation.seq):
            help = f"{_shown(other, 'id')} has it: give each its own, or leave `id` out"
            part.find("W1023", f"operation id {operation.id!r} is used twice", "id", help)
    return tuple(found)


def _shown(operation: Operation, key: str) -> str:
    place = operation.at.of(key)
    return repr(operation.name) + (f" in line {place.line}" if place is not None else "")


def _selectors(entries: Entries) -> dict[str, Said]:
    found: dict[str, Said] = {}
    for item in entries.pairs("selectors"):
        if not WORD.fullmatch(item.name):
            entries.findings.add(
                "W1021",
                f"the selector name {item.name!r} cannot be written as {{{{NAME}}}}",
                item.key.place(),
                "use letters, digits and underscores",
            )
        found[item.name] = expression_of(item.value, f"selector {item.name!r}", entries.findings)
    return found
