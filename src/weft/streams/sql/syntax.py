"""The tree of a streaming SQL job, as it is written: names are not looked up, options not read."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.core.duration import Duration
from weft.core.source import Source
from weft.core.types import DType
from weft.expr.ast import Expr
from weft.joins.spec.values import WindowKind
from weft.streams.kernel.spec import Emit, StreamHow


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What every node is; the place takes no part in equality."""

    at: Source = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Name(Node):
    """A name without its quotes."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidOption:
    """``'key' = 'value'``; numbers, TRUE and FALSE are the texts they are written as."""

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
    """A name after FROM or JOIN; without an alias of its own the name is the alias."""

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
    """The time column that may stand first; it must be the event time of a side."""
    column_of: Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinSyntax(Node):
    """``WITHIN d`` or ``WITHIN (before, after)``: right time in [left - before, left + after]."""

    before: Duration
    after: Duration


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSyntax(Node):
    """One JOIN with its ON and what follows it."""

    how: StreamHow
    source: SourceSyntax
    on: Expr
    within: WithinSyntax | None = None
    window: WindowSyntax | None = None
    how_at: Source = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(Node):
    """One entry of a select list."""

    expr: Expr | None = None
    is_star: bool = False
    star_of: Name | None = None
    alias: Name | None = None
    is_key: bool = False
    is_event_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Node):
    """A query."""

    items: tuple[Item, ...]
    source: SourceSyntax
    joins: tuple[JoinSyntax, ...] = ()
    where: Expr | None = None
    window: WindowSyntax | None = None
    emit: Emit | None = None
    emit_at: Source | None = field(default=None, compare=False, repr=False)
    options: tuple[SaidOption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateStream(Node):
    """``CREATE STREAM``; with a query it is the sink of that query."""

    name: Name
    columns: tuple[ColumnSyntax, ...] = ()
    options: tuple[SaidOption, ...] = ()
    query: Select | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable(Node):
    """``CREATE TABLE``: a side that does not change."""

    name: Name
    columns: tuple[ColumnSyntax, ...] = ()
    options: tuple[SaidOption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(Node):
    """``INSERT INTO sink SELECT ..``."""

    sink: Name
    query: Select


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Node):
    """A SELECT that stands alone: its rows are printed."""

    query: Select


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain(Node):
    """``EXPLAIN JOIN`` of a query, or of the statement that writes a sink."""

    query: Select | None = None
    name: Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOption(Node):
    """``SET 'option' = 'value'``."""

    option: SaidOption


Statement = CreateStream | CreateTable | Insert | Query | Explain | SetOption


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """What the statements that do not read may define, so that no other statement is blamed for it.

    `names` are the folded words in their heads, `written` those of them in the head of an INSERT; `settings`
    says that one of them is a SET, and `everything` that the text is cut off and may hold any statement.
    """

    names: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    settings: bool = False
    everything: bool = False

    def may_define(self, name: str) -> bool:
        """Whether one of them may define a name."""
        return self.everything or name.casefold() in self.names


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSyntax:
    """The statements of a job in the order of the file, and what is known of those that do not read."""

    statements: tuple[Statement, ...]
    unread: Unread = Unread()
    file: str | None = None
    text: str = field(default="", repr=False)
