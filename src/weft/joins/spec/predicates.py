"""Predicates of a join beyond equal keys: two columns compared, or a checked fragment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from weft import expr
from weft.core.fingerprint import canonical_json
from weft.core.frozen import FrozenMap
from weft.core.names import canonical_name, format_name, parse_name
from weft.errors import ArgumentError, Diagnostic, ExpressionError, JoinSpecError
from weft.expr.ast import map_children
from weft.joins.spec.serial import Serial
from weft.joins.spec.values import Distance, Operator, check_choice, check_distance, negate_distance

_MIRRORED: dict[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
SIDES: Mapping[str, str] = {"left": "left", "l": "left", "right": "right", "r": "right"}
"""The qualifiers of a fragment and the side each one means."""


@dataclass(frozen=True)
class ColumnPredicate(Serial):
    """A left column compared with a right column: ``left operator right [+ offset]``.

    Parameters
    ----------
    left
        Name of a left column.  Required.
    operator
        ``"="``, ``"!="``, ``"<"``, ``"<="``, ``">"`` or ``">="``.  Required.
    right
        Name of a right column; it may be the same name as `left`.  Required.
    offset
        Added to the right column: a duration such as ``"1 hour"`` or a timedelta for times, a number for
        numbers.  None (default) adds nothing.

    Examples
    --------
    The quote is at most an hour old:

    >>> print(ColumnPredicate("event_ts", "<=", "quote_ts", offset="1 hour"))
    left.event_ts <= right.quote_ts + 1 hour
    """

    TYPE: ClassVar[str] = "column"

    left: str
    operator: Operator
    right: str
    offset: Distance | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", canonical_name(parse_name(self.left, what="left column")))
        object.__setattr__(self, "right", canonical_name(parse_name(self.right, what="right column")))
        check_choice(self.operator, Operator, "operator")
        if self.offset is not None:
            object.__setattr__(self, "offset", check_distance(self.offset, "offset", signed=True))

    def reversed(self) -> ColumnPredicate:
        """Return the same condition with the two relations exchanged."""
        offset = None if self.offset is None else negate_distance(self.offset)
        return ColumnPredicate(self.right, _MIRRORED[self.operator], self.left, offset)

    def __str__(self) -> str:
        offset = "" if self.offset is None else f" + {self.offset}"
        return f"{format_column('left', self.left)} {self.operator} {format_column('right', self.right)}{offset}"


def format_column(side: str, name: str) -> str:
    """Return a column as it is written in an expression: ``left.x``."""
    return f"{side}.{format_name(parse_name(name))}"


@dataclass(frozen=True, eq=False)
class ExpressionPredicate(Serial):
    """A boolean expression over both sides; it is parsed and checked, never inserted into SQL.

    Parameters
    ----------
    expression
        The expression.  Columns are ``left.x`` and ``right.x`` (or ``l.x`` and ``r.x``); a bare name is valid if
        only one side has it.  Required.
    args
        Values of parameters: a sequence for ``?``, a mapping for ``:name``.  They become literals of the parsed
        expression.  Empty by default.

    Examples
    --------
    >>> print(ExpressionPredicate("right.amount >= ? OR right.flag", args=[1000]))
    (right.amount >= 1000 OR right.flag)
    """

    TYPE: ClassVar[str] = "expression"

    expression: str
    args: Sequence[object] | Mapping[str, object] = ()
    tree: expr.Expr = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.expression, str):
            raise ArgumentError(
                f"expression must be a string, not {type(self.expression).__name__}",
                help="write for example ExpressionPredicate('right.amount >= ?', args=[1000])",
            )
        object.__setattr__(self, "args", _checked_args(self.args))
        try:
            tree = expr.parse(self.expression, dialect="fragment")
            tree = expr.bind(tree, self.args)
        except ExpressionError as cause:
            raise JoinSpecError(cause.diagnostics) from cause
        object.__setattr__(self, "tree", _checked_tree(tree))

    @classmethod
    def of_tree(cls, tree: expr.Expr) -> ExpressionPredicate:
        """Return the predicate of a tree over ``left.`` and ``right.``; its text follows and is not parsed.

        >>> tree = expr.parse("left.x > right.y + 1", dialect="fragment")
        >>> ExpressionPredicate.of_tree(tree) == ExpressionPredicate("left.x > right.y + 1")
        True
        """
        predicate = object.__new__(cls)
        object.__setattr__(predicate, "expression", expr.render(tree, dialect="fragment"))
        object.__setattr__(predicate, "args", ())
        object.__setattr__(predicate, "tree", _checked_tree(tree))
        return predicate

    def reversed(self) -> ExpressionPredicate:
        """Return the same condition with the two relations exchanged."""
        return self.of_tree(_exchange_sides(self.tree))

    def _identity(self) -> tuple[str, str]:
        # 1, True and Decimal(1) are equal in Python but not the same literal: compare as JSON.
        return self.expression, canonical_json(self.args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExpressionPredicate) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __str__(self) -> str:
        return f"({expr.render(self.tree, dialect='fragment')})"


JoinPredicate = ColumnPredicate | ExpressionPredicate


def _checked_args(args: Any) -> tuple[object, ...] | FrozenMap[str, object]:
    if isinstance(args, Mapping):
        checked: tuple[object, ...] | FrozenMap[str, object] = FrozenMap(args)
    elif isinstance(args, str | bytes) or not isinstance(args, Sequence):
        raise ArgumentError(
            f"args must be a sequence or a mapping, not {type(args).__name__}",
            help="write args=[value] for ?, args={'name': value} for :name",
        )
    else:
        checked = tuple(args)
    try:
        canonical_json(checked)  # refuses values that no literal can hold
    except (RecursionError, ValueError) as cause:  # ValueError: more digits than Python prints
        raise ArgumentError(
            "args are nested too deeply or hold too long a number", help="pass plain values, each a literal"
        ) from cause
    return checked


def _checked_tree(tree: expr.Expr) -> expr.Expr:
    findings = (*_foreign_qualifiers(tree), *_foreign_calls(tree))
    if findings:
        raise JoinSpecError(findings)
    return tree


def _foreign_qualifiers(tree: expr.Expr) -> Iterator[Diagnostic]:
    for ref in expr.references(tree):
        if ref.qualifier is not None and ref.qualifier.casefold() not in SIDES:
            yield Diagnostic(
                "W0309",
                f"{ref.qualifier!r} is not a side of the join",
                help=f"write left.{ref.name} or right.{ref.name}",
                at=ref.place,
            )


def _foreign_calls(tree: expr.Expr) -> Iterator[Diagnostic]:
    """Yield the calls that are invalid in a predicate: aggregates and TODAY()."""
    for node in expr.walk(tree):
        if not isinstance(node, expr.Call):
            continue
        if expr.FUNCTIONS[node.name].aggregate:
            message = f"{node.name} is an aggregate: a predicate is evaluated for one pair of rows"
            yield Diagnostic("W0210", message, "aggregate before the join, in a separate relation", at=node.place)
        elif node.name == "TODAY":
            help_ = "pass the date as a value: ExpressionPredicate('left.day <= ?', args=[date])"
            yield Diagnostic("W0215", "TODAY() has no date in a predicate", help_, at=node.place)


def _exchange_sides(tree: expr.Expr) -> expr.Expr:
    """Return the tree with ``left.`` and ``right.`` exchanged; bare names stay."""
    if isinstance(tree, expr.Ref) and tree.qualifier is not None:
        other = "right" if SIDES[tree.qualifier.casefold()] == "left" else "left"
        return expr.Ref(other, tree.name)
    return map_children(tree, _exchange_sides)
