"""Project: the recipe that a run follows, one operation after another over one input dataset."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from weft.core.fingerprint import fingerprint
from weft.core.frozen import EMPTY, FrozenMap
from weft.core.source import NOWHERE, Sites
from weft.pipelines.model.operation import Operation, Output
from weft.pipelines.model.reference import DatasetRef, Said
from weft.pipelines.model.words import Materialization, ProjectStatus, Visibility

DEFAULT_CHECKPOINT_EVERY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """One version of a project; its operations stand in the order of their seq."""

    id: str
    name: str
    version: int
    status: ProjectStatus
    input: DatasetRef
    operations: tuple[Operation, ...]
    selectors: FrozenMap[str, Said] = EMPTY
    resolver_overrides: FrozenMap[str, str] = EMPTY
    materialization: Materialization = "eager"
    visibility: Visibility = "private"
    owner: str = ""
    calendar: str = "gregorian"
    checkpoint_every: int = DEFAULT_CHECKPOINT_EVERY
    description: str = ""
    at: Sites = field(default=NOWHERE, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", tuple(sorted(self.operations, key=lambda op: op.seq)))

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"

    @property
    def registers(self) -> tuple[str, ...]:
        """The names under which outputs register datasets."""
        said = (
            op.arguments.register_as_dataset for op in self.operations if isinstance(op.arguments, Output)
        )
        return tuple(name.strip() for name in said if name is not None and name.strip())

    def operation(self, seq: int) -> Operation | None:
        """Return the operation with that seq, or None."""
        return next((op for op in self.operations if op.seq == seq), None)

    def structure(self) -> dict[str, Any]:
        """Return what makes a new version: operations, input, materialization."""
        return {
            **self.input.to_dict(dataset="input_dataset_id", version="input_dataset_version"),
            "materialization": self.materialization,
            "operations": [op.to_dict() for op in self.operations],
        }

    def behaviour(self) -> dict[str, Any]:
        """Return everything that can change a result: the structure, selectors, overrides, the calendar."""
        return {
            **self.structure(),
            "selectors": {name: said.text for name, said in self.selectors.items()},
            "resolver_overrides": dict(self.resolver_overrides),
            "calendar": self.calendar,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the canonical form of a project file; the store keeps it."""
        said = {
            "id": self.id,
            "name": self.name,
            "version": self.version,
            "status": self.status,
            "description": self.description,
            "owner": self.owner,
            "visibility": "" if self.visibility == "private" else self.visibility,
            "checkpoint_every": ""
            if self.checkpoint_every == DEFAULT_CHECKPOINT_EVERY
            else self.checkpoint_every,
        }
        return {key: value for key, value in said.items() if value != ""} | self.behaviour()

    def fingerprint(self) -> str:
        """Return the hash of the behaviour."""
        return fingerprint(self.behaviour())
