"""PlanContext: what the operations of a project resolve against, and where their mistakes go."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from weft.core.mistakes import Mistakes
from weft.core.names import listed, shell_word
from weft.core.period import Calendar, Period
from weft.core.source import Source
from weft.errors import Code, Diagnostic, OperationError, ResolutionError
from weft.expr import Expr
from weft.io.location import Location
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.project import Project
from weft.pipelines.model.reference import PERIOD_START, AsOfSaid
from weft.pipelines.plan.catalog import Catalog, Missing
from weft.pipelines.plan.lookups import LookupNode
from weft.pipelines.plan.reads import DatasetPin, Read, Role
from weft.pipelines.plan.resolver.locate import locate
from weft.pipelines.plan.resolver.precedence import Chosen, resolver_for
from weft.pipelines.plan.temporal import TemporalFilter, filter_for


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanContext:
    """What every operation of one project sees; `at_operation` gives each its own mistakes.

    Without a `period` data is not located, but resolvers are still found.
    """

    catalog: Catalog
    project: Project
    period: Period | None
    calendar: Calendar
    known_at: dt.datetime | None
    mistakes: Mistakes
    selectors: Mapping[str, Expr]
    lookups: Mapping[str, LookupNode] = field(default_factory=dict)
    aliases: Mapping[str, int] = field(default_factory=dict)
    """Aliases of joins anywhere in the project, with the seq of their operation."""
    draft: bool = False
    warnings: list[Diagnostic] = field(default_factory=list)
    may_delete: bool = False
    """Whether an operation before may have deleted rows."""
    _found: dict[tuple[str, int], Chosen | None] = field(default_factory=dict)

    def at_operation(self, mistakes: Mistakes, *, may_delete: bool) -> PlanContext:
        """Return the same context for one operation, with mistakes of its own."""
        return replace(self, mistakes=mistakes, may_delete=may_delete)

    @property
    def strict(self) -> bool:
        """Whether extensions of the join language are refused."""
        return self.catalog.settings.conformance == "strict"

    def mistake(self, code: Code, message: str, help: str, at: Source | None) -> None:
        """Note a mistake of the operation."""
        self.mistakes.add(OperationError(message, code=code, help=help, at=at))

    def warn(self, code: Code, message: str, help: str, at: Source | None) -> None:
        """Note a warning."""
        self.warnings.append(Diagnostic(code, message, help=help, severity="warning", at=at))

    def resolver(self, dataset: Dataset) -> Chosen | None:
        """Return the resolver of a dataset; None after noting why there is none, once for each dataset."""
        key = (dataset.id, dataset.version)
        if key not in self._found:
            self._found[key] = None
            with self.mistakes.noted():
                self._found[key] = resolver_for(dataset, self.project, self.catalog)
        return self._found[key]

    def read(
        self,
        name: str,
        role: Role,
        dataset: Dataset,
        table: TableDef,
        columns: tuple[str, ...],
        *,
        seq: int | None = None,
        alias: str = "",
        as_of: AsOfSaid = PERIOD_START,
    ) -> Read | None:
        """Return how a table is read; None after noting why it cannot be."""
        chosen = self.resolver(dataset)
        if chosen is None:
            return None
        pin = DatasetPin(
            role=role,
            seq=seq,
            alias=alias,
            dataset_id=dataset.id,
            dataset_version=dataset.version,
            resolver_id=chosen.id,
            resolver_version=chosen.version,
            resolver_source=chosen.source,
        )
        locations: tuple[Location, ...] = ()
        keeps = TemporalFilter(mode=table.temporal_mode)
        if self.period is not None:
            try:
                found = locate(
                    dataset, table, self.project, self.catalog, self.period, self.calendar, chosen=chosen
                )
            except ResolutionError as problem:
                self.mistakes.add(problem)
                return None
            self.warnings.extend(w for w in found.warnings if w not in self.warnings)
            locations = found.locations
            level = locations[0].data_level if locations else None
            keeps = filter_for(
                table, self.period, self.calendar, as_of=as_of, known_at=self.known_at, data_level=level
            )
        return Read(
            name=name,
            pin=pin,
            dataset=dataset,
            table=table,
            locations=locations,
            filter=keeps,
            columns=columns,
        )


def not_usable(missing: Missing, what: str, at: Source | None) -> OperationError:
    """Return the error for a dataset that an operation names and that cannot be taken."""
    said = missing.said
    if missing.kind == "disabled":
        message = f"{what} {said!r} is disabled"
        if missing.version is not None:
            message = f"{what} {said!r} version {missing.version} is disabled"
        help = f"enable it with `weft dataset enable {shell_word(said)}`, or name another"
    elif missing.kind == "version":
        message = f"{what} {said!r} has no version {missing.version}"
        help = f"versions are {', '.join(missing.near)}"
    else:
        message = f"{what} {said!r} is not there"
        near = f"did you mean {listed(missing.near)}?" if missing.near else "`weft dataset ls` lists them"
        help = missing.next_step or near
    return OperationError(message, code="W1213", help=help, at=at)
