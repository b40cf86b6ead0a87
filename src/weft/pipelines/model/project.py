"""Project: an input dataset and the operations that a run applies to it in order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from weft.core.fingerprint import fingerprint
from weft.core.frozen import EMPTY, FrozenMap
from weft.core.names import WORD
from weft.core.source import NO_SOURCES
from weft.core.spec import ALWAYS, Limits, Locations, Positive, ReadAs, Spec, Text, freeze_values
from weft.pipelines.model.entries import (
    Entries,
    ExpressionText,
    Findings,
    check_path_name,
    read_expression,
    read_identity,
)
from weft.pipelines.model.operation import AnyOperation, Operation, Output
from weft.pipelines.model.values import DatasetRef, LocatedText, Materialization, ProjectStatus, Visibility

DEFAULT_CHECKPOINT_EVERY = 200
_STRUCTURE = ("input_dataset_id", "input_dataset_version", "materialization", "operations")
_BEHAVIOUR = (*_STRUCTURE, "selectors", "resolver_overrides", "calendar")


def _selectors(_value: Any, written: Any, findings: Findings) -> FrozenMap[str, LocatedText]:
    selectors: dict[str, LocatedText] = {}
    for item in written.node.pairs():
        if not WORD.fullmatch(item.name):
            findings.add(
                "W1021",
                f"invalid selector name {item.name!r}: it cannot be used as {{{{NAME}}}}",
                item.key.place(),
                "use letters, digits and underscores",
            )
        selectors[item.name] = read_expression(item.value, f"selector {item.name!r}", findings)
    return FrozenMap(selectors)


def _operations(operations: tuple[Operation, ...], written: Any, findings: Findings) -> tuple[Operation, ...]:
    """Return the operations; report a seq or an id that is used twice."""
    by_seq: dict[int, Operation] = {}
    by_id: dict[str, Operation] = {}
    for operation, mapping in zip(operations, written, strict=True):
        part = Entries(mapping.node, findings)
        other = by_seq.setdefault(operation.seq, operation)
        if other is not operation:
            help = f"{_describe(other, 'seq')} also has it: choose another"
            part.report("W1009", f"seq {operation.seq} is used twice", "seq", help)
        if not part.node.text:  # the store contains projects from before ids had to be unique
            continue
        other = by_id.setdefault(operation.id, operation)
        # A derived id contains the seq: two equal ones were already reported as the same seq.
        if other is not operation and (part.node.get("id") is not None or other.seq != operation.seq):
            help = f"{_describe(other, 'id')} also has it: choose another, or remove `id`"
            part.report("W1023", f"operation id {operation.id!r} is used twice", "id", help)
    return operations


def _describe(operation: Operation, key: str) -> str:
    place = operation.at.of(key)
    return repr(operation.name) + (f" in line {place.line}" if place is not None else "")


_Operations = Annotated[
    tuple[Operation, ...], ReadAs(Annotated[tuple[AnyOperation, ...], Limits(min_length=1)], _operations)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Project(Spec):
    """A project: an input and the operations on it.

    The operations are sorted by seq.
    """

    SHORT: ClassVar = (("input_dataset_id", "input"),)
    FIRST: ClassVar = (
        "id", "name", "version", "status", "description", "owner", "visibility", "checkpoint_every", *_BEHAVIOUR,
    )  # fmt: skip
    id: Text = ""
    name: Text = ""
    version: Positive = field(default=1, metadata=ALWAYS)
    status: ProjectStatus = field(default="draft", metadata=ALWAYS)
    description: str = ""
    owner: str = ""
    visibility: Visibility = "private"
    input_dataset_id: Text
    input_dataset_version: Positive | None = None
    materialization: Materialization = field(default="eager", metadata=ALWAYS)
    calendar: Text = field(default="gregorian", metadata=ALWAYS)
    checkpoint_every: Positive = DEFAULT_CHECKPOINT_EVERY
    selectors: Annotated[FrozenMap[str, LocatedText], ReadAs(dict[str, ExpressionText], _selectors)] = field(
        default=EMPTY, metadata=ALWAYS
    )
    resolver_overrides: Annotated[FrozenMap[str, str], ReadAs(dict[str, Text], freeze_values)] = field(
        default=EMPTY, metadata=ALWAYS
    )
    operations: _Operations
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)

    def __post_init__(self) -> None:
        # The order in the file has no meaning; sorting here keeps every list of operations in the order they run.
        object.__setattr__(self, "operations", tuple(sorted(self.operations, key=lambda op: op.seq)))

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"

    @property
    def input(self) -> DatasetRef:
        """The input dataset, with its version if it is pinned."""
        return DatasetRef(self.input_dataset_id, self.input_dataset_version, self.at.values.get("input_dataset_id"))

    @property
    def registers(self) -> tuple[str, ...]:
        """The names under which outputs register datasets."""
        names = (op.arguments.register_as_dataset for op in self.operations if isinstance(op.arguments, Output))
        return tuple(name.strip() for name in names if name is not None and name.strip())

    def operation(self, seq: int) -> Operation | None:
        """Return the operation with that seq, or None."""
        return next((op for op in self.operations if op.seq == seq), None)

    def structure(self) -> dict[str, Any]:
        """Return what requires a new version when it changes: operations, input, materialization."""
        return {name: part for name, part in self.to_dict().items() if name in _STRUCTURE}

    def behaviour(self) -> dict[str, Any]:
        """Return everything that can change a result: structure, selectors, overrides, calendar."""
        return {name: part for name, part in self.to_dict().items() if name in _BEHAVIOUR}

    def fingerprint(self) -> str:
        """Return the hash of the behaviour."""
        return fingerprint(self.behaviour())


def check_project(project: Project, entries: Entries) -> Project:
    """Return a project with its id and name; the name must be usable as a folder name."""
    id, name = read_identity(entries, "project")
    # Drafts write to <sandbox>/<name>.
    check_path_name(entries, name, "name" if entries.located("name") else "id", "the project name")
    return replace(project, id=id, name=name)
