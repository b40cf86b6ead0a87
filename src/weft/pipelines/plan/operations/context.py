"""PlanContext: the context in which the operations of a project are resolved, with their expressions and written columns.

The value of a written column is converted to the type of the column:

::

    new column           the type of the expression; integers have 64 bits
    same type            as it is
    number               a wider number
    integer, decimal     decimal(p,s): rounded half up to s digits, too large fails the run
    anything else        W0209: write a CAST
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.core.calendar import Calendar, Period
from weft.core.findings import ErrorCollector
from weft.core.frozen import EMPTY
from weft.core.names import WORD, fold
from weft.core.source import Source
from weft.core.types import BOOLEAN, DOUBLE, FLOAT, LONG, NULL, Decimal, DType, Map, Schema, common_type
from weft.errors import Code, Diagnostic, ExpressionError, OperationError, ResolutionError
from weft.expr import Expr, Scope, Typed, check, interpolate, parse
from weft.expr import selectors as selectors_in
from weft.expr.checking import cast_help, convert
from weft.io.location import Location
from weft.pipelines.model.dataset import Dataset, TableDef
from weft.pipelines.model.operation import Operation
from weft.pipelines.model.project import Project
from weft.pipelines.model.values import PERIOD_START, RESERVED_TARGETS, AsOfDay, LocatedText
from weft.pipelines.plan.catalog import Catalog, MissingDataset
from weft.pipelines.plan.operations.resolved import HIDDEN, WorkingSet
from weft.pipelines.plan.reads import DatasetPin, Read, Role, TemporalFilter, build_filter
from weft.pipelines.plan.resolver.locate import ResolverChoice, choose_resolver, locate
from weft.pipelines.plan.scopes import LookupNode, OperationScope, Where


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanContext:
    """The context of all operations of a project; each operation gets a copy with its own error collector.

    Without a `period`, data is not located, but resolvers are still looked up.
    """

    catalog: Catalog
    project: Project
    period: Period | None
    calendar: Calendar
    known_at: dt.datetime | None
    errors: ErrorCollector
    selectors: Mapping[str, Expr]
    lookups: Mapping[str, LookupNode] = field(default_factory=dict)
    aliases: Mapping[str, int] = field(default_factory=dict)
    """Aliases of joins anywhere in the project, with the seq of their operation."""
    draft: bool = False
    warnings: list[Diagnostic] = field(default_factory=list)
    may_delete: bool = False
    """Whether an earlier operation may have deleted rows."""
    _resolvers: dict[tuple[str, int], ResolverChoice | None] = field(default_factory=dict)

    @property
    def strict(self) -> bool:
        """Whether extensions of the join language are rejected."""
        return self.catalog.settings.conformance == "strict"

    def report(self, code: Code, message: str, help: str, at: Source | None) -> None:
        """Record an error of the operation."""
        self.errors.add(OperationError(message, code=code, help=help, at=at))

    def warn(self, code: Code, message: str, help: str, at: Source | None) -> None:
        """Record a warning."""
        self.warnings.append(Diagnostic(code, message, help=help, severity="warning", at=at))

    def resolver(self, dataset: Dataset) -> ResolverChoice | None:
        """Return the resolver of a dataset; None when there is none, which is reported once for each dataset."""
        key = (dataset.id, dataset.version)
        if key not in self._resolvers:
            self._resolvers[key] = None  # stays when `choose_resolver` fails: the error is reported once
            with self.errors.collect():
                self._resolvers[key] = choose_resolver(dataset, self.project, self.catalog)
        return self._resolvers[key]

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
        """Return the read of a table; None when it cannot be located, which is reported."""
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
                resolution = locate(
                    dataset, table, self.project, self.catalog, self.period, self.calendar, chosen=chosen
                )
            except ResolutionError as problem:
                self.errors.add(problem)
                return None
            # A table that several operations read has the same warning each time.
            self.warnings.extend(w for w in resolution.warnings if w not in self.warnings)
            locations = resolution.locations
            level = locations[0].data_level if locations else None
            keeps = build_filter(
                table, self.period, self.calendar, as_of=as_of, known_at=self.known_at, data_level=level
            )
        return Read(
            name=name, pin=pin, dataset=dataset, table=table, locations=locations, filter=keeps, columns=columns
        )


def operation_scope(
    op: Operation,
    working: WorkingSet,
    context: PlanContext,
    joins: Mapping[str, Schema | None] = EMPTY,
    where: Where = "expression",
) -> OperationScope:
    """Return the columns that an operation with these joins can name."""
    elsewhere = {alias: seq for alias, seq in context.aliases.items() if seq != op.seq}
    return OperationScope(working=working, lookups=context.lookups, joins=joins, elsewhere=elsewhere, where=where)


def missing_dataset_error(missing: MissingDataset, what: str, at: Source | None) -> OperationError:
    """Return the error for a dataset that is missing or disabled."""
    name = missing.name
    if missing.kind == "disabled":
        version = "" if missing.version is None else f" version {missing.version}"
        message = f"{what} {name!r}{version} is disabled"
    elif missing.kind == "version":
        message = f"{what} {name!r} has no version {missing.version}"
    else:
        message = f"{what} {name!r} does not exist"
    return OperationError(message, code="W1213", help=missing.next_step(), at=at)


def parse_text(text: LocatedText, context: PlanContext) -> Expr | None:
    """Return the parsed expression with its selectors substituted; None when it is invalid, which is reported."""
    try:
        tree = parse(text.text, source=text.at)
        return interpolate(tree, context.selectors) if selectors_in(tree) else tree
    except ExpressionError as problem:
        context.errors.add(problem)
        return None


def check_expression(
    text: LocatedText, scope: Scope, context: PlanContext, *, aggregates: bool = False
) -> Typed | None:
    """Return the typed expression; None when it is invalid, which is reported."""
    tree = parse_text(text, context)
    if tree is None:
        return None
    try:
        return check(tree, scope, aggregates=aggregates)
    except ExpressionError as problem:
        context.errors.add(problem)
        return None


def resolve_selector(
    text: LocatedText | None, scope: Scope, context: PlanContext, *, blank: bool = False
) -> Typed | None:
    """Return the condition of an operation; None when there is none, or when it is invalid, which is reported.

    With `blank`, an empty string means that there is none.
    """
    if text is None or (blank and not text.text.strip()):
        return None
    if not text.text.strip():
        context.report("W1403", "the selector is empty", "write a condition, or leave the key out", text.at)
        return None
    typed = check_expression(text, scope, context)
    if typed is None or typed.dtype in (BOOLEAN, NULL):
        return typed
    at = typed.expr.span.place if typed.expr.span is not None else text.at
    context.report(
        "W1406", f"the selector is of type {typed.dtype}, not boolean", "compare it with something, as in ... = 1", at
    )
    return None


def is_unknown(typed: Typed) -> bool:
    """Whether the expression reads a column of unknown type, because the operation that writes it is invalid."""
    return any(node.op == "ref" and node.dtype == NULL for node in typed.walk())


LABELS = "_labels"


def check_writable(column: LocatedText, working: WorkingSet, context: PlanContext) -> bool:
    """Whether a column with that name may be written; if not, the reason is reported."""
    name = column.text
    if not WORD.fullmatch(name):
        context.report(
            "W1402",
            f"invalid column name {name!r}",
            "a name starts with a letter and has letters, digits and underscores",
            column.at,
        )
        return False
    if name in RESERVED_TARGETS or name.startswith(HIDDEN):
        context.report("W1402", f"column {name!r} is Weft's own", "write to a column with another name", column.at)
        return False
    same = next((n for n in working.schema.names if n != name and fold(n) == fold(name)), None)
    if same is not None and name not in working.schema:
        context.report(
            "W1409",
            f"column {name!r} differs from {same!r} only in case",
            f"write {same!r}, or choose another name",
            column.at,
        )
        return False
    return True


def convert_for_storage(typed: Typed, existing: DType | None) -> tuple[Typed, DType] | None:
    """Return the value converted to the type it is stored in, or None when the types do not match.

    >>> from weft.core.types import Schema
    >>> from weft.expr import TableScope, check, parse
    >>> product = check(parse("a * r"), TableScope({"t": Schema.of(a="decimal(18,2)", r="decimal(18,6)")}))
    >>> (str(product.dtype), str(convert_for_storage(product, Decimal(18, 2))[1]), convert_for_storage(product, LONG))
    ('decimal(37,8)', 'decimal(18,2)', None)
    """
    own = typed.dtype
    if existing is None:
        # Files and databases differ in their small numbers; the wide ones are the same everywhere.
        wide = LONG if own.is_integer else DOUBLE if own == FLOAT else own
        return convert(typed, wide), wide
    # NULL as the type of a column means that it is unknown, because its assignment is invalid.
    if own in (existing, NULL) or existing == NULL:
        return convert(typed, existing), existing
    # Maps differ in whether values can be NULL, which does not matter for storing them.
    if isinstance(own, Map) and isinstance(existing, Map):
        fits = (own.key, own.value) == (existing.key, existing.value)
        return (typed, existing) if fits else None
    exact = own.is_integer or isinstance(own, Decimal)
    if exact and isinstance(existing, Decimal):
        return convert(typed, existing), existing
    if own.is_numeric and existing.is_numeric and common_type(own, existing) == existing:
        return convert(typed, existing), existing
    return None


def convert_to_column(
    typed: Typed, column: LocatedText, expression: LocatedText, existing: DType | None, context: PlanContext
) -> tuple[Typed, DType] | None:
    """Return the value converted to the type of its column; None when the types do not match, which is reported."""
    if existing is None and typed.dtype == NULL:
        context.report(
            "W1404",
            f"the type of the new column {column.text!r} cannot be inferred from NULL",
            "write the type: CAST(NULL AS string)",
            expression.at,
        )
        return None
    stored_value = convert_for_storage(typed, existing)
    if stored_value is None and existing is not None:
        at = typed.expr.span.place if typed.expr.span is not None else expression.at
        context.report(
            "W0209",
            f"column {column.text!r} is {existing}, the expression gives {typed.dtype}",
            cast_help(typed, existing) or "write to a column with another name",
            at,
        )
    return stored_value
