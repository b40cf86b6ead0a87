"""Build the entity of a file from its nodes, and collect all findings with their locations.

::

    compose(text)  ->  unwrap_root, expand_short_forms  ->  validated and built by pydantic  ->  RULES

    operations:                               operations:
      - {seq: 10, ..., selecter: x}   ->        - {seq: 10, ...}          an unknown key is ignored
      - {seq: 20, type: update}                                           an incomplete operation is dropped
      - {seq: 0, name: Drop, ...}               - {seq: 21, name: Drop}   an invalid seq or name is replaced
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
from weft.pipelines.model.entries import Entries, Findings, Rules, to_pydantic
from weft.pipelines.model.findings import Path, Problem, get_adapter, list_problems
from weft.pipelines.model.normalize import Kind, expand_short_forms, is_known_type, unwrap_root
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
from weft.pipelines.model.resolver import CatalogStrategy, Resolver, check_catalog, check_datasource, check_resolver
from weft.pipelines.model.scenario import Expect, Scenario, check_expect, check_rows
from weft.pipelines.model.values import MISSING_INPUT
from weft.pipelines.model.workspace import CalendarFile, Settings, WrittenCalendar, build_calendar, check_settings
from weft.pipelines.model.yaml_nodes import Item, Node, node_from_value

Entity = Dataset | Project | Resolver | DataSource | CalendarFile | Settings | Scenario
E = TypeVar("E", bound=Entity)

SPECS: Mapping[Kind, type[Spec]] = {
    "settings": Settings,
    "calendar": WrittenCalendar,
    "datasource": DataSource,
    "resolver": Resolver,
    "dataset": Dataset,
    "project": Project,
    "scenario": Scenario,
}

# Each round drops what the one before it reported, which may reveal more; two are enough for most files.
_ROUNDS = 6
_SEQ = re.compile(r"[0-9]{1,18}")  # what fits 64 bits
_REPLACEABLE = ("name", "seq")
"""Keys of an operation that can have any value while the rest of it is checked."""

_ADDS_NOTHING = ("delete", "output")
"""Types of operations that add neither rows nor columns."""


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The entity of a file, None when too little of it is valid, and all findings."""

    entity: Entity | None
    findings: tuple[Diagnostic, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether the file has no errors."""
        return self.entity is not None and not any(f.severity == "error" for f in self.findings)


def read_entity(kind: Kind, root: Node) -> ReadResult:
    """Read an entity from the root of its file."""
    findings: list[Diagnostic] = []
    node = expand_short_forms(unwrap_root(root, kind, findings), kind, findings)
    if any(f.code == "W1002" for f in findings) and node is root:
        # The file contains another kind of entity, so all its keys would be reported as unknown.
        return ReadResult(None, tuple(findings))
    dropped: tuple[Node, ...] = ()
    if kind == "project":
        node, dropped = _drop_unknown_operations(node, findings)
    built = _build(node, SPECS[kind], findings)
    entity = built.entity
    if isinstance(entity, Project):
        entity = _mark_dropped(entity, node, built.lost, dropped)
    return ReadResult(entity, tuple(built.findings.diagnostics))


@dataclass(frozen=True, slots=True)
class _BuildResult:
    """The entity that the valid part of a node gives, or None, and the paths that were dropped."""

    entity: Any
    findings: Findings
    lost: tuple[Path, ...] = ()


def _build(node: Node, spec: type[Spec], earlier: list[Diagnostic]) -> _BuildResult:
    """Build the valid part of a node; report everything that is wrong with the rest."""
    errors: tuple[Diagnostic, ...] = ()
    lost: list[Path] = []
    left = node
    for round_number in range(_ROUNDS):
        # A new list each time: the rules of a failed round have added findings that the next one adds again.
        findings = Findings([*earlier, *errors], RULES, partial=bool(errors))
        try:
            entity = get_adapter(spec).validate_python(to_pydantic(left), context=findings)
        except ValidationError as error:
            problems = list_problems(error, left, spec)
            # Only the first round is about the file: later errors come from parts that were dropped.
            errors = errors if round_number else tuple(p.finding for p in problems)
            pruned = _prune(left, problems, lost)
            if pruned is None:
                break
            left = pruned
        else:
            return _BuildResult(entity, findings, tuple(lost))
    return _BuildResult(None, Findings([*earlier, *errors]))


def _drop_unknown_operations(node: Node, findings: list[Diagnostic]) -> tuple[Node, tuple[Node, ...]]:
    """Return a project without operations of unknown types, and those operations."""
    listed = node.get("operations")
    if listed is None or not listed.is_list:
        return node, ()
    kept: list[Node] = []
    dropped: list[Node] = []
    for part in listed.items():
        (kept if not part.is_mapping or is_known_type(part, findings) else dropped).append(part)
    if not kept and dropped:
        # An empty list would be reported as an error of the file, so one harmless operation stays in it.
        kept = [_placeholder(dropped[0])]
    return node.with_value("operations", replace(listed, value=tuple(kept))), tuple(dropped)


def _placeholder(operation: Node) -> Node:
    """Return an operation without effect at the location of one that was dropped."""
    content = {"seq": operation.scalar("1", ""), "name": operation.scalar("none"), "type": operation.scalar("delete")}
    return replace(operation, value=tuple(Item(key, operation.scalar(key), value) for key, value in content.items()))


def _mark_dropped(project: Project, node: Node, without: tuple[Path, ...], dropped: tuple[Node, ...]) -> Project:
    """Return a project with an `Unread` operation for each dropped one that could add columns or rows.

    Later operations may use such columns, and must not be blamed for it.
    """
    whole = node.get("operations")
    lost = [path[1] for path in without if path[0] == "operations" and len(path) == 2]
    gone = [*(whole.value[i] for i in lost if whole is not None), *dropped]
    marks = tuple(
        Operation(
            id="", seq=_read_seq(op) or 0, name="unread", type="update", arguments=Unread(op.text[op.start : op.end])
        )
        for op in gone
        if _read_type(op) not in _ADDS_NOTHING
    )
    return replace(project, operations=(*marks, *project.operations))


def _prune(node: Node, problems: tuple[Problem, ...], lost: list[Path]) -> Node | None:
    dropped_paths: set[Path] = set()
    for problem in problems:
        path = problem.path
        if (filled := _fill_placeholder(node, path)) is not None:
            node = filled
            continue
        # Without a key that it needs, a mapping cannot be checked: the whole entry of its list is dropped.
        if problem.kind == "missing" or not path or isinstance(path[-1], int):
            path = _outermost_entry(path)
            if not path or (problem.kind == "missing" and path == problem.path):
                return None
            lost.append(path)
        dropped_paths.add(path)
    return _drop(node, (), dropped_paths)


def _fill_placeholder(node: Node, path: Path) -> Node | None:
    """Return a project with a placeholder for its input, or for the `name` or `seq` of an operation.

    The placeholder lets the rest be checked.  A `seq` keeps the operation after the one listed before it;
    None when no number is free there.
    """
    if path == ("input_dataset_id",) and node.is_mapping:
        placeholder = node.scalar(MISSING_INPUT)
        return replace(node, value=(*node.without(path[0]).value, Item(path[0], placeholder, placeholder)))
    if len(path) != 3 or path[0] != "operations" or path[2] not in _REPLACEABLE:
        return None
    listed, index, key = node.get("operations"), path[1], str(path[2])
    if listed is None or not isinstance(index, int) or not listed.is_list:
        return None
    operations = list(listed.items())
    value = "unnamed"
    if key == "seq":
        taken = [_read_seq(op) for op in operations]
        number = 1 + max((seq for seq in taken[:index] if seq is not None), default=0)
        if number in taken:
            return None
        value = str(number)
    operation = operations[index]
    placeholder = operation.scalar(value, "" if key == "seq" else "text")
    kept = operation.without(key).value
    operations[index] = replace(operation, value=(*kept, Item(key, placeholder, placeholder)))
    return node.with_value("operations", replace(listed, value=tuple(operations)))


def _read_seq(operation: Node) -> int | None:
    """Return the seq of an operation, None when it is not a positive integer."""
    node = operation.get("seq") if operation.is_mapping else None
    if node is None or node.kind != "scalar" or not _SEQ.fullmatch(str(node.value)):
        return None
    return int(node.value) or None


def _outermost_entry(path: Path) -> Path:
    """Return the outermost entry of a list around a path, else its first key."""
    for i, step in enumerate(path):
        if isinstance(step, int):
            return path[: i + 1]
    return path[:1]


def _drop(node: Node, at: Path, dropped_paths: set[Path]) -> Node:
    if node.is_mapping:
        kept = (item for item in node.pairs() if (*at, item.name) not in dropped_paths)
        return replace(node, value=tuple(i._replace(value=_drop(i.value, (*at, i.name), dropped_paths)) for i in kept))
    if node.is_list:
        parts = ((i, part) for i, part in enumerate(node.items()) if (*at, i) not in dropped_paths)
        return replace(node, value=tuple(_drop(part, (*at, i), dropped_paths) for i, part in parts))
    return node


def _read_type(operation: Node) -> str:
    node = operation.get("type")
    return str(node.value) if node is not None else ""


def _check_scenario(scenario: Scenario, entries: Entries) -> Scenario | None:
    """Return a scenario; a project inside it is read like a file of its own."""
    for item in entries.pairs("given"):
        check_rows(Entries(item.value, entries.findings), f"table {item.name!r}")
    project_node = entries.node.get("project")
    if project_node is None or not project_node.is_mapping:
        return scenario
    inner = read_entity("project", project_node)
    entries.findings.extend(inner.findings)
    return replace(scenario, project=inner.entity) if isinstance(inner.entity, Project) else None


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
    Expect: check_expect,
    Scenario: _check_scenario,
    WrittenCalendar: build_calendar,
    Settings: check_settings,
}
"""Checks of each spec beyond its keys; some return the entity, whose type differs from that of the spec."""


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
