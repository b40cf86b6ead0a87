"""From the nodes of a file to its entity; every finding at once, each at its location.

::

    compose(text)  ->  unwrapped, canonical  ->  checked against the spec and built  ->  checked by the rules

    operations:                               operations:
      - {seq: 10, ..., selecter: x}   ->        - {seq: 10, ...}          an unknown key is passed over
      - {seq: 20, type: update}                                           what lacks a part is left out
      - {seq: 0, name: Drop, ...}               - {seq: 21, name: Drop}   a number or a name is made up
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import ValidationError

from weft.core.spec import Spec
from weft.errors import Diagnostic, EntityError
from weft.io.datasource import DataSource
from weft.pipelines.model.dataset import Dataset, LookupDef, check_dataset, check_lookup
from weft.pipelines.model.datasource import check_datasource
from weft.pipelines.model.entries import Entries, Findings, Rules, read_text, to_pydantic
from weft.pipelines.model.findings import Path, Problem, get_adapter, list_problems
from weft.pipelines.model.older import is_known_kind
from weft.pipelines.model.operation import (
    AggregateOperation,
    AppendOperation,
    DeleteOperation,
    Operation,
    Output,
    OutputOperation,
    Unread,
    UpdateOperation,
    as_operation,
    check_output,
)
from weft.pipelines.model.project import Project, check_project
from weft.pipelines.model.resolver import CatalogStrategy, Resolver, check_catalog, check_resolver
from weft.pipelines.model.scenario import Scenario, WrittenScenario, build_scenario
from weft.pipelines.model.sugar import Kind, expand_short_forms, unwrap_root
from weft.pipelines.model.values import MISSING_INPUT
from weft.pipelines.model.workspace import (
    CalendarFile,
    Settings,
    WrittenCalendar,
    build_calendar,
    check_settings,
)
from weft.pipelines.model.yaml_nodes import Item, Node, node_from_value

__all__ = ["SPECS", "Entity", "ReadResult", "entity_from_dict", "entity_from_node", "read_entity"]

Entity = Dataset | Project | Resolver | DataSource | CalendarFile | Settings | Scenario
E = TypeVar("E", bound=Entity)

SPECS: Mapping[Kind, type[Spec]] = {
    "settings": Settings,
    "calendar": WrittenCalendar,
    "datasource": DataSource,
    "resolver": Resolver,
    "dataset": Dataset,
    "project": Project,
    "scenario": WrittenScenario,
}

_ROUNDS = 6
_SEQ = re.compile(r"[0-9]{1,18}")
_MADE_UP = ("name", "seq")
"""Keys of an operation whose value does not matter to what the rest of it says."""

_MAKES_NOTHING = ("delete", "output")
"""Operations that add neither rows nor columns."""


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What a file says, as far as it can be read, and everything found in it."""

    entity: Entity | None
    findings: tuple[Diagnostic, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether nothing in the file is an error."""
        return self.entity is not None and not any(f.severity == "error" for f in self.findings)


def read_entity(kind: Kind, root: Node) -> ReadResult:
    """Read an entity from the root of its file."""
    told: list[Diagnostic] = []
    node = expand_short_forms(unwrap_root(root, kind, told), kind, told)
    if any(f.code == "W1002" for f in told) and node is root:
        # The file holds another kind of entity; all its keys would be unknown.
        return ReadResult(None, tuple(told))
    if kind == "project":
        node, dropped = _known_operations(node, told)
    else:
        dropped = ()
    built = _built(node, SPECS[kind], told)
    entity = built.entity
    if isinstance(entity, Project):
        entity = _with_unread(entity, node, built.lost, dropped)
    return ReadResult(entity, tuple(built.findings.diagnostics))


@dataclass(frozen=True, slots=True)
class _Built:
    """What a node says as far as it fits its spec, None when that is too little, and what was left out."""

    entity: Any
    findings: Findings
    lost: tuple[Path, ...] = ()


def _built(node: Node, spec: type[Spec], told: list[Diagnostic]) -> _Built:
    """Return what is built from the part of a node that fits the spec, with every finding about the rest."""
    wrong: tuple[Diagnostic, ...] = ()
    lost: list[Path] = []
    left = node
    for round_number in range(_ROUNDS):
        findings = Findings([*told, *wrong], RULES, partial=bool(wrong))
        try:
            entity = get_adapter(spec).validate_python(to_pydantic(left), context=findings)
        except ValidationError as error:
            problems = list_problems(error, left, spec)
            # What goes missing by leaving parts out is no finding of the file.
            wrong = wrong if round_number else tuple(p.finding for p in problems)
            pruned = _pruned(left, problems, lost)
            if pruned is None:
                break
            left = pruned
        else:
            return _Built(entity, findings, tuple(lost))
    return _Built(None, Findings([*told, *wrong]))


def _known_operations(node: Node, told: list[Diagnostic]) -> tuple[Node, tuple[Node, ...]]:
    """Return a project without operations of kinds that there are not."""
    listed = node.get("operations")
    if listed is None or not listed.is_list:
        return node, ()
    kept: list[Node] = []
    dropped: list[Node] = []
    for part in listed.items():
        (kept if not part.is_mapping or is_known_kind(part, told) else dropped).append(part)
    if not kept and dropped:
        # The list was not empty in the file; something harmless stands for what was in it.
        kept = [_stand_in(dropped[0])]
    parts = replace(listed, value=tuple(kept))
    items = tuple(i._replace(value=parts) if i.name == "operations" else i for i in node.pairs())
    return replace(node, value=items), tuple(dropped)


def _stand_in(operation: Node) -> Node:
    """Return an operation without effect at the place of one that is not read."""

    def at_its_place(value: str) -> Node:
        return replace(operation, kind="scalar", value=value, style="" if value.isdigit() else "text", size=1)

    said = {"seq": "1", "name": "none", "type": "delete"}
    return replace(operation, value=tuple(Item(k, at_its_place(k), at_its_place(v)) for k, v in said.items()))


def _with_unread(
    project: Project, node: Node, without: tuple[Path, ...], dropped: tuple[Node, ...]
) -> Project:
    """Return a project with a mark for every operation that is lost and could have made columns or rows.

    What later operations say about columns that it may have made would be no finding of theirs.
    """
    whole = node.get("operations")
    lost = [path[1] for path in without if path[0] == "operations" and len(path) == 2]
    gone = [*(whole.value[i] for i in lost if whole is not None), *dropped]
    marks = tuple(
        Operation(
            id="",
            seq=_seq_of(op) or 0,
            name="unread",
            type="update",
            arguments=Unread(op.text[op.start : op.end]),
        )
        for op in gone
        if _kind(op) not in _MAKES_NOTHING
    )
    return replace(project, operations=(*marks, *project.operations))


def _pruned(node: Node, problems: tuple[Problem, ...], lost: list[Path]) -> Node | None:
    doomed: set[Path] = set()
    for problem in problems:
        path = problem.path
        if (filled := _with_stand_in(node, path)) is not None:
            node = filled
            continue
        if problem.kind == "missing" or not path or isinstance(path[-1], int):
            path = _part(path)
            if not path or (problem.kind == "missing" and path == problem.path):
                return None
            lost.append(path)
        doomed.add(path)
    return _without(node, (), doomed)


def _with_stand_in(node: Node, path: Path) -> Node | None:
    """Return a project with some input, or an operation with some `name` or `seq`: the rest can be checked.

    The made-up `seq` keeps the operation behind the one listed before it; None when no number is free there.
    """
    if path == ("input_dataset_id",) and node.is_mapping:
        stand_in = replace(node, kind="scalar", value=MISSING_INPUT, style="text", size=1)
        kept = tuple(item for item in node.pairs() if item.name != path[0])
        return replace(node, value=(*kept, Item("input_dataset_id", stand_in, stand_in)))
    if len(path) != 3 or path[0] != "operations" or path[2] not in _MADE_UP:
        return None
    listed, index, key = node.get("operations"), path[1], str(path[2])
    if listed is None or not isinstance(index, int) or not listed.is_list:
        return None
    operations = list(listed.items())
    said = "unnamed"
    if key == "seq":
        taken = [_seq_of(op) for op in operations]
        number = 1 + max((seq for seq in taken[:index] if seq is not None), default=0)
        if number in taken:
            return None
        said = str(number)
    operation = operations[index]
    stand_in = replace(operation, kind="scalar", value=said, style="" if key == "seq" else "text", size=1)
    kept = tuple(item for item in operation.pairs() if item.name != key)
    operations[index] = replace(operation, value=(*kept, Item(key, stand_in, stand_in)))
    whole = replace(listed, value=tuple(operations))
    return replace(
        node, value=tuple(i._replace(value=whole) if i.name == "operations" else i for i in node.pairs())
    )


def _seq_of(operation: Node) -> int | None:
    """Return the seq that an operation says, None when that is not a positive whole number."""
    said = operation.get("seq") if operation.is_mapping else None
    if said is None or said.kind != "scalar" or not _SEQ.fullmatch(str(said.value)):
        return None
    return int(said.value) or None


def _part(path: Path) -> Path:
    """Return the outermost entry of a list around a path, else its first key."""
    for i, step in enumerate(path):
        if isinstance(step, int):
            return path[: i + 1]
    return path[:1]


def _without(node: Node, at: Path, doomed: set[Path]) -> Node:
    if node.is_mapping:
        kept = (item for item in node.pairs() if (*at, item.name) not in doomed)
        return replace(
            node,
            value=tuple(i._replace(value=_without(i.value, (*at, i.name), doomed)) for i in kept),
        )
    if node.is_list:
        parts = ((i, part) for i, part in enumerate(node.items()) if (*at, i) not in doomed)
        return replace(node, value=tuple(_without(part, (*at, i), doomed) for i, part in parts))
    return node


def _kind(operation: Node) -> str:
    said = operation.get("type")
    return str(said.value) if said is not None else ""


def _scenario(written: WrittenScenario, entries: Entries) -> Scenario | None:
    """Return the scenario that a file writes; a project inside it is read like one of its own file."""
    node, findings = entries.node, entries.findings
    said = node.get("project")
    if said is None or not said.is_mapping:
        return build_scenario(written, entries, read_text(said or node))
    inner = read_entity("project", said)
    findings.extend(inner.findings)
    return build_scenario(written, entries, inner.entity) if isinstance(inner.entity, Project) else None


RULES: Rules = {
    DataSource: check_datasource,
    Resolver: check_resolver,
    CatalogStrategy: check_catalog,
    LookupDef: check_lookup,
    Dataset: check_dataset,
    Output: check_output,
    UpdateOperation: as_operation,
    AggregateOperation: as_operation,
    AppendOperation: as_operation,
    DeleteOperation: as_operation,
    OutputOperation: as_operation,
    Project: check_project,
    WrittenScenario: _scenario,
    WrittenCalendar: build_calendar,
    Settings: check_settings,
}
"""What is checked about a spec besides its keys; the entity of a file whose form differs is built here."""


_KINDS: Mapping[type[Any], Kind] = {
    Dataset: "dataset",
    Project: "project",
    Resolver: "resolver",
    DataSource: "datasource",
    Scenario: "scenario",
}


def entity_from_node(entity: type[E], node: Node) -> E:
    """Return the entity of a file; raise `EntityError` with every finding."""
    result = read_entity(_KINDS[entity], node)
    if not result.is_valid or not isinstance(result.entity, entity):
        raise EntityError(result.findings)
    return result.entity


def entity_from_dict(entity: type[E], data: Mapping[str, Any]) -> E:
    """Return the entity that its `to_dict` wrote."""
    return entity_from_node(entity, node_from_value(data))
