"""PlanContext: what the operations of a project resolve against, their expressions, and the columns they may write.

Columns that an operation writes: whether the name may be written, and how the value becomes its type.

::

    new column           the type of the expression; whole numbers have 64 bits
    same type            as it is
    number               a wider number
    whole, decimal       decimal(p,s): rounded half up to s digits, too large fails the run
    anything else        W0209: write a CAST
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from weft.core.calendar import Calendar, Period
from weft.core.findings import ErrorCollector
from weft.core.names import fold, format_list, quote_for_shell
from weft.core.source import Source
from weft.core.types import BOOLEAN, DOUBLE, FLOAT, LONG, NULL, Decimal, DType, Map, common_type
from weft.errors import Code, Diagnostic, ExpressionError, OperationError, ResolutionError
from weft.expr import Expr, Scope, Typed, check, interpolate, parse
from weft.expr import selectors as selectors_in
from weft.expr.checking import cast_help, convert
from weft.io.location import Location
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.project import Project
from weft.pipelines.model.values import PERIOD_START, RESERVED_TARGETS, AsOfDay, LocatedText
from weft.pipelines.plan.catalog import Catalog, MissingDataset
from weft.pipelines.plan.operations.resolved import HIDDEN, WorkingSet
from weft.pipelines.plan.reads import DatasetPin, Read, Role, TemporalFilter, build_filter
from weft.pipelines.plan.resolver.locate import ResolverChoice, choose_resolver, locate
from weft.pipelines.plan.scopes import LookupNode


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
    mistakes: ErrorCollector
    selectors: Mapping[str, Expr]
    lookups: Mapping[str, LookupNode] = field(default_factory=dict)
    aliases: Mapping[str, int] = field(default_factory=dict)
    """Aliases of joins anywhere in the project, with the seq of their operation."""
    draft: bool = False
    warnings: list[Diagnostic] = field(default_factory=list)
    may_delete: bool = False
    """Whether an operation before may have deleted rows."""
    _found: dict[tuple[str, int], ResolverChoice | None] = field(default_factory=dict)

    def at_operation(self, mistakes: ErrorCollector, *, may_delete: bool) -> PlanContext:
        """Return the same context for one operation, with mistakes of its own."""
        return replace(self, mistakes=mistakes, may_delete=may_delete)

    @property
    def strict(self) -> bool:
        """Whether extensions of the join language are refused."""
        return self.catalog.settings.conformance == "strict"

    def report(self, code: Code, message: str, help: str, at: Source | None) -> None:
        """Note a mistake of the operation."""
        self.mistakes.add(OperationError(message, code=code, help=help, at=at))

    def warn(self, code: Code, message: str, help: str, at: Source | None) -> None:
        """Note a warning."""
        self.warnings.append(Diagnostic(code, message, help=help, severity="warning", at=at))

    def resolver(self, dataset: Dataset) -> ResolverChoice | None:
        """Return the resolver of a dataset; None after noting why there is none, once for each dataset."""
        key = (dataset.id, dataset.version)
        if key not in self._found:
            self._found[key] = None
            with self.mistakes.collect():
                self._found[key] = choose_resolver(dataset, self.project, self.catalog)
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
        as_of: AsOfDay = PERIOD_START,
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
            keeps = build_filter(
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


def not_usable(missing: MissingDataset, what: str, at: Source | None) -> OperationError:
    """Return the error for a dataset that an operation names and that cannot be taken."""
    said = missing.name
    if missing.kind == "disabled":
        message = f"{what} {said!r} is disabled"
        if missing.version is not None:
            message = f"{what} {said!r} version {missing.version} is disabled"
        help = f"enable it with `weft dataset enable {quote_for_shell(said)}`, or name another"
    elif missing.kind == "version":
        message = f"{what} {said!r} has no version {missing.version}"
        help = f"versions are {', '.join(missing.near)}"
    else:
        message = f"{what} {said!r} is not there"
        near = (
            f"did you mean {format_list(missing.near)}?" if missing.near else "`weft dataset ls` lists them"
        )
        help = missing.next_step or near
    return OperationError(message, code="W1213", help=help, at=at)


def read(said: LocatedText, context: PlanContext) -> Expr | None:
    """Return the tree of a text with its selectors put in; None after noting what is wrong with it."""
    try:
        tree = parse(said.text, source=said.at)
        return interpolate(tree, context.selectors) if selectors_in(tree) else tree
    except ExpressionError as problem:
        context.mistakes.add(problem)
        return None


def checked(
    said: LocatedText, scope: Scope, context: PlanContext, *, aggregates: bool = False
) -> Typed | None:
    """Return the typed expression; None after noting what is wrong with it."""
    tree = read(said, context)
    if tree is None:
        return None
    try:
        return check(tree, scope, aggregates=aggregates)
    except ExpressionError as problem:
        context.mistakes.add(problem)
        return None


def selector(
    said: LocatedText | None, scope: Scope, context: PlanContext, *, blank: bool = False
) -> Typed | None:
    """Return the condition of an operation; None when there is none, or after noting what is wrong.

    `blank` says whether an empty text means that there is none.
    """
    if said is None or (blank and not said.text.strip()):
        return None
    if not said.text.strip():
        context.report("W1403", "the selector is empty", "write a condition, or leave the key out", said.at)
        return None
    typed = checked(said, scope, context)
    if typed is None or typed.dtype in (BOOLEAN, NULL):
        return typed
    at = typed.expr.span.place if typed.expr.span is not None else said.at
    context.report(
        "W1406",
        f"the selector gives {typed.dtype}, a condition is wanted",
        "compare it with something, as in ... = 1",
        at,
    )
    return None


def is_unknown(typed: Typed) -> bool:
    """Whether the expression reads a column whose type nobody knows, because its own operation is wrong."""
    return any(node.op == "ref" and node.dtype == NULL for node in typed.walk())


LABELS = "_labels"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def writable(said: LocatedText, working: WorkingSet, context: PlanContext) -> bool:
    """Whether a column of that name may be written; what is wrong is noted."""
    name = said.text
    if not _NAME.fullmatch(name):
        context.report(
            "W1402",
            f"{name!r} is not a column that can be written",
            "a name starts with a letter and has letters, digits and underscores",
            said.at,
        )
        return False
    if name in RESERVED_TARGETS or name.startswith(HIDDEN):
        context.report(
            "W1402", f"column {name!r} is Weft's own", "write to a column of another name", said.at
        )
        return False
    same = next((n for n in working.schema.names if n != name and fold(n) == fold(name)), None)
    if same is not None and name not in working.schema:
        context.report(
            "W1409",
            f"column {name!r} differs from {same!r} only in case",
            f"write {same!r}, or choose another name",
            said.at,
        )
        return False
    return True


def stored(typed: Typed, existing: DType | None) -> tuple[Typed, DType] | None:
    """Return the value in the type it is stored in, or None when the types do not fit.

    >>> from weft.core.types import Schema
    >>> from weft.expr import TableScope, check, parse
    >>> product = check(parse("a * r"), TableScope({"t": Schema.of(a="decimal(18,2)", r="decimal(18,6)")}))
    >>> str(product.dtype), str(stored(product, Decimal(18, 2))[1]), stored(product, LONG)
    ('decimal(37,8)', 'decimal(18,2)', None)
    """
    own = typed.dtype
    if existing is None:
        wide = LONG if own.is_integer else DOUBLE if own == FLOAT else own
        return convert(typed, wide), wide
    if own in (existing, NULL) or existing == NULL:
        return convert(typed, existing), existing
    if isinstance(own, Map) and isinstance(existing, Map):
        fits = (own.key, own.value) == (existing.key, existing.value)
        return (typed, existing) if fits else None
    exact = own.is_integer or isinstance(own, Decimal)
    if exact and isinstance(existing, Decimal):
        return convert(typed, existing), existing
    if own.is_numeric and existing.is_numeric and common_type(own, existing) == existing:
        return convert(typed, existing), existing
    return None


def fitted(
    typed: Typed, said: LocatedText, expression: LocatedText, existing: DType | None, context: PlanContext
) -> tuple[Typed, DType] | None:
    """Return the value in the type of its column; None after noting why it does not fit."""
    if existing is None and typed.dtype == NULL:
        context.report(
            "W1404",
            f"the type of the new column {said.text!r} cannot be told from NULL",
            "say it: CAST(NULL AS string)",
            expression.at,
        )
        return None
    found = stored(typed, existing)
    if found is None and existing is not None:
        at = typed.expr.span.place if typed.expr.span is not None else expression.at
        context.report(
            "W0209",
            f"column {said.text!r} is {existing}, the expression gives {typed.dtype}",
            cast_help(typed, existing) or "write to a column of another name",
            at,
        )
    return found
