"""The syntax tree of a streaming SQL job: names are not resolved and options not interpreted yet."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.core.duration import Duration
from weft.core.source import Source
from weft.core.types import DType
from weft.errors import Diagnostic
from weft.expr.ast import Expr
from weft.joins.spec.values import WindowKind
from weft.streams.kernel.spec import Emit, StreamHow
from weft.streams.sql.spec import ItemSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The base of all nodes; the location takes no part in equality."""

    at: Source = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Name(Node):
    """A name without its quotes."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionSyntax:
    """``'key' = 'value'``; numbers, TRUE and FALSE are kept as strings."""

    key: str
    value: str
    key_at: Source = field(compare=False, repr=False)
    value_at: Source = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSyntax(Node):
    """A declared column."""

    name: Name
    dtype: DType
    nullable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSyntax(Node):
    """A name after FROM or JOIN; without an alias the name is the alias."""

    name: Name
    alias: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSyntax(Node):
    """``WINDOW TUMBLING(size)``, ``SLIDING(size, slide)`` or ``SESSION(gap)``."""

    kind: WindowKind
    size: Duration | None = None
    slide: Duration | None = None
    gap: Duration | None = None
    column: Name | None = None
    """The optional first argument: the event-time column of one of the sides."""
    column_of: Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinSyntax(Node):
    """``WITHIN d`` or ``WITHIN (before, after)``: the right time is in [left - before, left + after]."""

    before: Duration
    after: Duration


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSyntax(Node):
    """One JOIN with its ON, WITHIN and WINDOW."""

    how: StreamHow
    source: SourceSyntax
    on: Expr
    within: WithinSyntax | None = None
    window: WindowSyntax | None = None
    how_at: Source = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Node):
    """A query."""

    items: tuple[ItemSpec, ...]
    source: SourceSyntax
    joins: tuple[JoinSyntax, ...] = ()
    where: Expr | None = None
    window: WindowSyntax | None = None
    emit: Emit | None = None
    emit_at: Source | None = field(default=None, compare=False, repr=False)
    options: tuple[OptionSyntax, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateStream(Node):
    """``CREATE STREAM``; with a query, the stream is the sink of the query."""

    name: Name
    columns: tuple[ColumnSyntax, ...] = ()
    options: tuple[OptionSyntax, ...] = ()
    query: Select | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable(Node):
    """``CREATE TABLE``: a static side of a join."""

    name: Name
    columns: tuple[ColumnSyntax, ...] = ()
    options: tuple[OptionSyntax, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(Node):
    """``INSERT INTO sink SELECT ..``."""

    sink: Name
    query: Select


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Node):
    """A SELECT without a sink: its rows are printed."""

    query: Select


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain(Node):
    """``EXPLAIN JOIN`` of a query or of the statement that writes a sink."""

    query: Select | None = None
    name: Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOption(Node):
    """``SET 'option' = 'value'``."""

    option: OptionSyntax


Statement = CreateStream | CreateTable | Insert | Query | Explain | SetOption


@dataclass(frozen=True, slots=True, kw_only=True)
class Unparsed:
    """What the invalid statements of a job may define, so that no valid statement is blamed for it.

    `names` are the folded words before their columns and options, `sinks` those of INSERT statements.
    `has_set` is true when one of them is a SET, `is_truncated` when the text ends early and may lack any statement.
    """

    names: frozenset[str] = frozenset()
    sinks: frozenset[str] = frozenset()
    has_set: bool = False
    is_truncated: bool = False

    def may_define(self, name: str) -> bool:
        """Whether one of the statements may define a name."""
        return self.is_truncated or name.casefold() in self.names


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSyntax:
    """The valid statements of a job in file order, what is known about the invalid ones, and all findings."""

    statements: tuple[Statement, ...]
    unparsed: Unparsed = Unparsed()
    findings: tuple[Diagnostic, ...] = field(default=(), compare=False)
    file: str | None = None
    text: str = field(default="", repr=False)
