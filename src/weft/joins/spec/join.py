"""JoinSpec: equal keys, predicates, and promises about the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

from weft.core.findings import ErrorCollector
from weft.core.names import canonical_name, find_similar, parse_name
from weft.errors import ArgumentError, JoinSpecError, NoJoinKeysError
from weft.joins.spec.predicates import ColumnPredicate, ExpressionPredicate, JoinPredicate, format_column
from weft.joins.spec.serial import Serial
from weft.joins.spec.values import How, Relationship, Unmatched, check_bool, check_choice

KeyPairs = tuple[tuple[str, str], ...]
_MIRRORED_RELATIONSHIP: dict[str, Relationship] = {"1:1": "1:1", "1:m": "m:1", "m:1": "1:m", "m:m": "m:m"}
_MIRRORED_UNMATCHED: dict[str, Unmatched] = {"left": "right", "right": "left", "both": "both", "error": "error"}


@dataclass(frozen=True)
class JoinSpec(Serial):
    """The condition of a join: pairs of equal columns, and predicates.

    `relationship` and `unmatched` are promises about the data.  A job whose data break a promise fails,
    and the error names the keys.

    Parameters
    ----------
    equal_keys
        Columns that must be equal: a sequence of pairs ``(left column, right column)`` and of names that both sides
        have, or one such name.  Required; may be empty if there is a predicate.
    predicates
        Further conditions: a sequence of `ColumnPredicate` and `ExpressionPredicate`.  Empty by default.
    nulls_equal
        Whether a NULL key matches a NULL key.  False by default: a NULL key matches nothing.
    relationship
        How many matches a row may have: ``"m:1"`` (a left row has at most one), ``"1:m"`` (a right row has
        at most one), ``"1:1"`` or ``"m:m"``.  None (default) checks nothing.
    unmatched
        The side whose rows must all have a match: ``"left"``, ``"right"``, ``"both"``, or ``"error"`` for the
        side that the join keeps (right for a right join, both for a full join, left otherwise).  None
        (default) checks nothing.

    Examples
    --------
    >>> spec = JoinSpec(
    ...     equal_keys=[("order_id", "id")], predicates=[ColumnPredicate("order_date", ">=", "customer_since")]
    ... )
    >>> print(spec)
    left.order_id = right.id AND left.order_date >= right.customer_since
    >>> JoinSpec("region") == JoinSpec([("region", "region")])
    True
    """

    TYPE: ClassVar[str] = "join"
    # A spec must not import the folder that resolves it, which is further down the map.  So `weft.joins.resolve.join`
    # registers its function here; `import weft` loads it, and tests/test_layers.py lists this one hook.
    _resolver: ClassVar[Callable[..., Any]]

    equal_keys: Sequence[tuple[str, str]]
    predicates: Sequence[JoinPredicate] = ()
    nulls_equal: bool = field(default=False, kw_only=True)
    relationship: Relationship | None = field(default=None, kw_only=True)
    unmatched: Unmatched | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "equal_keys", check_key_pairs(self.equal_keys))
        object.__setattr__(self, "predicates", check_predicates(self.predicates, "predicates"))
        check_bool(self.nulls_equal, "nulls_equal")
        if self.relationship is not None:
            check_choice(self.relationship, Relationship, "relationship")
        if self.unmatched is not None:
            check_choice(self.unmatched, Unmatched, "unmatched")
        self._check_not_empty()

    def _check_not_empty(self) -> None:
        if not self.equal_keys and not self.predicates:
            raise NoJoinKeysError(
                "a JoinSpec needs an equal key or a predicate",
                help="give equal_keys=[('left_column', 'right_column')]; for all pairs call cross_join",
            )

    @classmethod
    def from_tuples(
        cls, *keys: tuple[str, str], predicates: Sequence[JoinPredicate] | None = None, **options: Any
    ) -> Self:
        """Build a spec from key pairs given one after another."""
        return cls(equal_keys=keys, predicates=predicates or (), **options)

    @classmethod
    def from_kwargs(
        cls,
        *shared: str,
        predicates: Sequence[JoinPredicate] = (),
        keys: Keys = None,
        nulls_equal: bool = False,
        relationship: Relationship | None = None,
        unmatched: Unmatched | None = None,
        **aliases: str,
    ) -> Self:
        """Build a spec with keys written as in a natural join: shared names, then aliases, then `keys`.

        A column with the name of an option goes into `keys`.

        >>> JoinSpec.from_kwargs("region", customer_ref="id").equal_keys
        (('region', 'region'), ('customer_ref', 'id'))
        """
        pairs = [(name, name) for name in shared]
        pairs.extend(read_alias_pairs(aliases, keys, FROM_KWARGS))
        return cls(
            equal_keys=pairs,
            predicates=predicates,
            nulls_equal=nulls_equal,
            relationship=relationship,
            unmatched=unmatched,
        )

    def bind(self, left: Any, right: Any, *, how: How | None = None, project: Any = None) -> Any:
        """Resolve the spec against two relations or schemas; raises if anything does not fit.

        Returns a `weft.joins.resolve.resolved.ResolvedJoin`.  No job runs.

        Parameters
        ----------
        left, right
            The two sides, each a `Relation` or a `Schema`.
        how
            ``"inner"`` (default), ``"left"``, ``"right"``, ``"full"``, ``"semi"`` or ``"anti"``.  A spec with an
            order has its own `how`; leave it out here.
        project
            The columns of the result, a `JoinProjection`.  By default all left columns, then the right ones
            without the keys.

        Examples
        --------
        >>> import weft
        >>> from weft.core.types import Schema
        >>> orders, customers = Schema.of(ref="long"), Schema.of(id="long", name="string")
        >>> weft.JoinSpec([("ref", "id")]).bind(orders, customers, how="left").schema.names
        ('ref', 'name')
        """
        schemas = (getattr(side, "schema", side) for side in (left, right))
        return JoinSpec._resolver(self, *schemas, how=how, project=project)

    def with_predicates(self, *predicates: JoinPredicate) -> Self:
        """Return the spec with more predicates, after the existing ones."""
        return replace(self, predicates=(*self.predicates, *predicates))

    def merge(self, other: JoinSpec) -> Self:
        """Return this spec with the keys and predicates of `other` added.

        An option that differs between the two is an error, unless one of them has the default value.
        """
        if not isinstance(other, JoinSpec):
            raise ArgumentError(
                f"merge takes a JoinSpec, not {type(other).__name__}",
                help="write spec.merge(JoinSpec([('left_column', 'right_column')]))",
            )
        keys = tuple(dict.fromkeys((*self.equal_keys, *other.equal_keys)))
        predicates = tuple(dict.fromkeys((*self.predicates, *other.predicates)))
        return replace(self, equal_keys=keys, predicates=predicates, **self._merged_options(other))

    def _merged_options(self, other: JoinSpec) -> dict[str, Any]:
        theirs, ours = ({f.name for f in fields(spec) if f.init} for spec in (other, self))
        merged: dict[str, Any] = {}
        for f in fields(self):
            if f.name in ("equal_keys", "predicates") or f.name not in theirs:
                continue
            mine, yours = getattr(self, f.name), getattr(other, f.name)
            if mine != yours and f.default not in (mine, yours):
                raise JoinSpecError(
                    f"the specs differ in {f.name}: {mine!r} and {yours!r}",
                    code="W0305",
                    help=f"leave {f.name} out of one of them, or write the same value in both",
                )
            merged[f.name] = yours if mine == f.default else mine
        if foreign := theirs - ours:
            raise JoinSpecError(
                f"a {type(self).__name__} cannot take {', '.join(sorted(foreign))} of a {type(other).__name__}",
                code="W0305",
                help="merge the plain JoinSpec into the other one",
            )
        return merged

    def reversed(self) -> Self:
        """Return the same condition with the two relations exchanged."""
        return replace(
            self,
            equal_keys=tuple((r, left) for left, r in self.equal_keys),
            predicates=tuple(p.reversed() for p in self.predicates),
            relationship=self.relationship and _MIRRORED_RELATIONSHIP[self.relationship],
            unmatched=self.unmatched and _MIRRORED_UNMATCHED[self.unmatched],
        )

    def __str__(self) -> str:
        equal = "<=>" if self.nulls_equal else "="
        terms = [f"{format_column('left', a)} {equal} {format_column('right', b)}" for a, b in self.equal_keys]
        return " AND ".join([*terms, *map(str, self.predicates)])


FROM_KWARGS = ("predicates", "keys", "nulls_equal", "relationship", "unmatched")
"""Keywords of `JoinSpec.from_kwargs` that are not aliases."""

Keys = Mapping[str, str] | Sequence[str | tuple[str, str]] | str | None


def check_key_pairs(keys: object, what: str = "equal_keys") -> KeyPairs:
    """Return `keys` as pairs of names; a name alone is that column on both sides.

    >>> check_key_pairs("symbol"), check_key_pairs(["region", ("customer", "id")])
    ((('symbol', 'symbol'),), (('region', 'region'), ('customer', 'id')))
    """
    if isinstance(keys, str):
        keys = (keys,)
    # A set has no order, and the order of conditions is part of a spec.
    if isinstance(keys, bytes | Mapping | AbstractSet) or not isinstance(keys, Iterable):
        raise ArgumentError(
            f"{what} must be a column name, or a sequence of names and (left, right) pairs, not {type(keys).__name__}",
            help=f"write {what}='id' if both sides have that column, otherwise {what}=[('order_id', 'id')]",
        )
    pairs: list[tuple[str, str]] = []
    for i, pair in enumerate(keys):
        if isinstance(pair, str):
            pair = (pair, pair)  # noqa: PLW2901  # the short form of the same key
        if isinstance(pair, bytes) or not isinstance(pair, Sequence):
            raise ArgumentError(
                f"{what}[{i}] must be a column name or a (left, right) pair, not {pair!r}",
                help="write ('left_column', 'right_column')",
            )
        if len(pair) != 2:
            raise JoinSpecError(
                f"{what}[{i}] has {len(pair)} names, a pair has 2",
                code="W0303",
                help="write ('left_column', 'right_column')",
            )
        left, right = (
            canonical_name(parse_name(n, what=f"{s} key")) for s, n in zip(("left", "right"), pair, strict=True)
        )
        # Written twice is one condition; the fingerprint must not depend on it.
        if (left, right) not in pairs:
            pairs.append((left, right))
    return tuple(pairs)


def check_predicates(predicates: object, what: str) -> tuple[JoinPredicate, ...]:
    """Return predicates as a tuple, or raise when one is of another class."""
    if predicates is None:
        return ()
    if isinstance(predicates, str | bytes | Mapping | AbstractSet | Serial) or not isinstance(predicates, Iterable):
        raise ArgumentError(
            f"{what} must be a sequence of predicates, not {type(predicates).__name__}",
            help=f"write {what}=[ColumnPredicate('left_column', '<=', 'right_column')]",
        )
    checked = tuple(predicates)
    for i, predicate in enumerate(checked):
        if not isinstance(predicate, ColumnPredicate | ExpressionPredicate):
            raise ArgumentError(
                f"{what}[{i}] must be a ColumnPredicate or ExpressionPredicate, not {type(predicate).__name__}",
                help=f"write ExpressionPredicate({predicate!r})"
                if isinstance(predicate, str)
                else "write ColumnPredicate('left_column', '<=', 'right_column')",
            )
    return checked


def read_alias_pairs(aliases: Mapping[str, Any], keys: Keys, parameters: Sequence[str] = ()) -> KeyPairs:
    """Return the pairs from alias keywords and from `keys=`, in call order.

    `parameters` are the keywords of the method: an alias that is spelled like one gets it as a suggestion.
    """
    pairs: list[tuple[str, str]] = []
    mistakes = ErrorCollector()
    for left, right in aliases.items():
        if isinstance(right, str):
            pairs.append((left, right))
        else:
            message = f"alias {left}={right!r}: the right column must be a string, not {type(right).__name__}"
            mistakes.add(ArgumentError(message, help=_alias_help(left, parameters)))
    # Without the schemas the case policy is not known: names that differ in case only are taken as one.
    named = {left.casefold() for left, _ in pairs}
    with mistakes.collect():
        for left, right in _listed_keys(keys):
            if left.casefold() in named:
                message = f"column {left!r} is given both as a keyword and in keys="
                mistakes.add(ArgumentError(message, code="W0305", help="leave one of the two out"))
            pairs.append((left, right))
    mistakes.raise_all()
    return tuple(pairs)


def _alias_help(left: object, parameters: Sequence[str]) -> str:
    close = find_similar(str(left), parameters, most=1)
    return f"did you mean the parameter {close[0]}=?" if close else f"write {left}='right_column'"


def _listed_keys(keys: Keys) -> KeyPairs:
    if keys is None:
        return ()
    if isinstance(keys, Mapping):
        return tuple(read_alias_pairs(keys, None))
    return check_key_pairs(keys, "keys")
