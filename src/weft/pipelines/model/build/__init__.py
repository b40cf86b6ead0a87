"""From nodes to the values of ``weft.joins.spec.pipeline``; every finding at once, each at its place.

::

    compose(text)  ->  unwrapped, canonical  ->  checked against the shape  ->  built by the rules
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from weft.errors import Diagnostic, EntityError
from weft.io.datasource import DataSource
from weft.pipelines.model.build.datasets import build_dataset
from weft.pipelines.model.build.entries import entity_id, said_of
from weft.pipelines.model.build.projects import build_project
from weft.pipelines.model.build.scenarios import build_scenario
from weft.pipelines.model.build.sources import (
    build_calendar,
    build_datasource,
    build_resolver,
    build_settings,
)
from weft.pipelines.model.checked import Checked, checked, seq_of
from weft.pipelines.model.dataset import Dataset
from weft.pipelines.model.findings import Findings
from weft.pipelines.model.older import is_known_kind
from weft.pipelines.model.operation import Operation, Unread
from weft.pipelines.model.project import Project
from weft.pipelines.model.resolver import Resolver
from weft.pipelines.model.scenario import Scenario
from weft.pipelines.model.shapes.base import Shape
from weft.pipelines.model.shapes.calendar import CalendarShape
from weft.pipelines.model.shapes.dataset import DatasetShape
from weft.pipelines.model.shapes.datasource import DataSourceShape
from weft.pipelines.model.shapes.project import ProjectShape
from weft.pipelines.model.shapes.resolver import ResolverShape
from weft.pipelines.model.shapes.scenario import ScenarioShape
from weft.pipelines.model.shapes.settings import SettingsShape
from weft.pipelines.model.sugar import Kind, canonical, unwrapped
from weft.pipelines.model.workspace import CalendarFile, Settings
from weft.pipelines.model.yaml_nodes import Item, Node, made

__all__ = [
    "SHAPES",
    "Entity",
    "Reading",
    "dataset_from_dict",
    "dataset_of",
    "datasource_from_dict",
    "entity_id",
    "project_from_dict",
    "project_of",
    "read",
    "resolver_from_dict",
    "resolver_of",
    "scenario_of",
]

Entity = Dataset | Project | Resolver | DataSource | CalendarFile | Settings | Scenario
E = TypeVar("E", bound=Entity)

SHAPES: Mapping[Kind, type[Shape]] = {
    "settings": SettingsShape,
    "calendar": CalendarShape,
    "datasource": DataSourceShape,
    "resolver": ResolverShape,
    "dataset": DatasetShape,
    "project": ProjectShape,
    "scenario": ScenarioShape,
}

_MAKES_NOTHING = ("delete", "output")
"""Operations that add neither rows nor columns."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file says, as far as it can be read, and everything found in it."""

    entity: Entity | None
    findings: tuple[Diagnostic, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing in the file is an error."""
        return self.entity is not None and not any(f.severity == "error" for f in self.findings)


def read(kind: Kind, root: Node) -> Reading:
    """Read an entity from the root of its file."""
    findings = Findings()
    node = canonical(unwrapped(root, kind, findings.told), kind, findings.told)
    if any(f.code == "W1002" for f in findings.told) and node is root:
        # The file holds another kind of entity; all its keys would be unknown.
        return Reading(None, tuple(findings.told))
    if kind == "project":
        node, dropped = _known_operations(node, findings)
    else:
        dropped = ()
    found = checked(node, SHAPES[kind])
    findings.told.extend(found.findings)
    findings.partial = bool(found.findings)
    if found.node is None:
        return Reading(None, tuple(findings.told))
    entity = _BUILDERS[kind](found.node, findings)
    if isinstance(entity, Project):
        entity = _with_unread(entity, node, found, dropped)
    return Reading(entity, tuple(findings.told))


def _known_operations(node: Node, findings: Findings) -> tuple[Node, tuple[Node, ...]]:
    """Return a project without operations of kinds that there are not."""
    listed = node.get("operations")
    if listed is None or not listed.is_list:
        return node, ()
    kept: list[Node] = []
    dropped: list[Node] = []
    for part in listed.items():
        (kept if not part.is_mapping or is_known_kind(part, findings.told) else dropped).append(part)
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


def _with_unread(project: Project, node: Node, found: Checked, dropped: tuple[Node, ...]) -> Project:
    """Return a project with a mark for every operation that is lost and could have made columns or rows.

    What later operations say about columns that it may have made would be no finding of theirs.
    """
    whole = node.get("operations")
    lost = [path[1] for path in found.lost if path[0] == "operations" and len(path) == 2]
    gone = [*(whole.value[i] for i in lost if whole is not None), *dropped]
    marks = tuple(
        Operation(
            id="",
            seq=seq_of(op) or 0,
            name="unread",
            type="update",
            arguments=Unread(op.text[op.start : op.end]),
        )
        for op in gone
        if _kind(op) not in _MAKES_NOTHING
    )
    return replace(project, operations=(*marks, *project.operations))


def _kind(operation: Node) -> str:
    said = operation.get("type")
    return str(said.value) if said is not None else ""


def _scenario(node: Node, findings: Findings) -> Scenario | None:
    said = node.get("project")
    if said is None or not said.is_mapping:
        return build_scenario(node, findings, said_of(said or node))
    inner = read("project", said)
    for finding in inner.findings:
        findings.add(finding.code, finding.message, finding.at, finding.help, finding.severity)  # type: ignore[arg-type]
    return build_scenario(node, findings, inner.entity) if isinstance(inner.entity, Project) else None


_BUILDERS: Mapping[Kind, Callable[[Node, Findings], Any]] = {
    "settings": build_settings,
    "calendar": build_calendar,
    "datasource": build_datasource,
    "resolver": build_resolver,
    "dataset": build_dataset,
    "project": build_project,
    "scenario": _scenario,
}


def _sound(kind: Kind, node: Node, wanted: type[E]) -> E:
    reading = read(kind, node)
    if not reading.sound or not isinstance(reading.entity, wanted):
        raise EntityError(reading.findings)
    return reading.entity


def dataset_of(node: Node) -> Dataset:
    """Return the dataset of a file; raise `EntityError` with every finding."""
    return _sound("dataset", node, Dataset)


def project_of(node: Node) -> Project:
    """Return the project of a file; raise `EntityError` with every finding."""
    return _sound("project", node, Project)


def resolver_of(node: Node) -> Resolver:
    """Return the resolver of a file; raise `EntityError` with every finding."""
    return _sound("resolver", node, Resolver)


def scenario_of(node: Node) -> Scenario:
    """Return the scenario of a file; raise `EntityError` with every finding."""
    return _sound("scenario", node, Scenario)


def dataset_from_dict(data: Mapping[str, Any]) -> Dataset:
    """Return the dataset that `Dataset.to_dict` wrote."""
    return _sound("dataset", made(data), Dataset)


def project_from_dict(data: Mapping[str, Any]) -> Project:
    """Return the project that `Project.to_dict` wrote."""
    return _sound("project", made(data), Project)


def resolver_from_dict(data: Mapping[str, Any]) -> Resolver:
    """Return the resolver that `Resolver.to_dict` wrote."""
    return _sound("resolver", made(data), Resolver)


def datasource_from_dict(data: Mapping[str, Any]) -> DataSource:
    """Return the datasource that `DataSource.to_dict` wrote."""
    return _sound("datasource", made(data), DataSource)
