"""Output columns of a join: suppression, coalescing, keep and drop, renames, suffixes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.core.names import find_similar, fold, format_list, parse_name
from weft.core.types import STRING, Schema
from weft.errors import AmbiguousColumnError, ColumnCollisionError, JoinSpecError, UnknownColumnError
from weft.joins.resolve.resolved import OutputColumn, ResolvedKey, Side
from weft.joins.spec.projection import DEFAULT_SUFFIXES, JoinProjection, split_side
from weft.joins.spec.values import How


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRequest:
    """Everything that decides the output columns."""

    how: How
    left: Schema
    right: Schema
    keys: tuple[ResolvedKey, ...]
    project: JoinProjection
    right_order: int | None = None
    """The right order column of a temporal join; if names are equal it gets a suffix by default."""
    displaced: Mapping[int, str]


def output_columns(request: OutputRequest) -> tuple[OutputColumn, ...]:
    """Return the columns of the result: left ones in order, then right ones.

    Raises `ColumnCollisionError` when two of them would carry one name.
    """
    if request.how in ("semi", "anti"):
        return _left_only(request)
    # Names are resolved before any suffix is added: keep, drop and rename use the names of the two sides.
    columns = _kept(_candidates(request), request)
    columns, renamed = _renamed(columns, request)
    _check_collisions(columns, renamed, request)
    suffixes = request.project.effective_suffixes or DEFAULT_SUFFIXES
    named = _add_suffixes(columns, renamed, suffixes, request)
    if twice := _twice(named, request):
        raise _duplicates(twice, _suffixes_that_pass(columns, renamed, request), request)
    return named


def _left_only(request: OutputRequest) -> tuple[OutputColumn, ...]:
    if request.project.indicator is not None:
        raise JoinSpecError(
            f"a {request.how} join has no indicator: it keeps left columns only",
            code="W0307",
            help="leave indicator= out, or use a left join and filter on its indicator",
        )
    columns = _kept([_column(request, "left", i) for i in range(len(request.left))], request)
    columns, _ = _renamed(columns, request)
    if twice := _twice(columns, request):
        raise _duplicates(twice, None, request)
    return tuple(columns)


def _column(request: OutputRequest, side: Side, index: int) -> OutputColumn:
    schema = request.left if side == "left" else request.right
    padded = request.how in ({"left": ("right", "full"), "right": ("left", "full")}[side])
    field = schema.fields[index]
    return OutputColumn.of(side, index, field, nullable=field.nullable or padded)


def _candidates(request: OutputRequest) -> list[OutputColumn]:
    coalesced = _coalesced(request)
    hidden = _suppressed(request, coalesced)
    columns = []
    for i in range(len(request.left)):
        column = _column(request, "left", i)
        key = coalesced.get(i)
        if key is not None:
            right = request.right.fields[key.right]
            column = replace(
                column,
                source="coalesced",
                right=key.right,
                dtype=key.dtype,
                nullable=request.left.fields[i].nullable or right.nullable,
                reason=f"equal to right.{right.name}; the value of the side that has a row",
            )
        columns.append(column)
    columns.extend(_column(request, "right", i) for i in range(len(request.right)) if i not in hidden)
    return columns


def _coalesced(request: OutputRequest) -> dict[int, ResolvedKey]:
    """Return the left key columns that have the value of the right key in unmatched right rows."""
    if request.project.right_keys != "auto" or request.how not in ("right", "full"):
        return {}
    # A left column has one value: of several right keys that are equal to it, the first one fills it.
    first: dict[int, ResolvedKey] = {}
    for key in request.keys:
        first.setdefault(key.left, key)
    return first


def _suppressed(request: OutputRequest, coalesced: Mapping[int, ResolvedKey]) -> set[int]:
    """Return the right columns that the result does not repeat."""
    hidden: set[int] = set()
    if request.project.right_keys == "drop" or (
        request.project.right_keys == "auto" and request.how not in ("right", "full", "cross")
    ):
        hidden = {k.right for k in request.keys}
    elif coalesced:
        # A second right key of one left column stays: in an unmatched right row it may differ.
        hidden = {k.right for k in coalesced.values()}
    if request.right_order is not None and not request.project.keep_right_order:
        hidden.add(request.right_order)
    return hidden


def _address(column: str, columns: Sequence[OutputColumn], request: OutputRequest, what: str) -> int | None:
    """Return the position of the output column that `column` means, None if it is suppressed."""
    side, name = split_side(column, what)
    sides: tuple[Side, ...] = ("left", "right") if side is None else ("left" if side == "left" else "right",)
    schemas = {"left": request.left, "right": request.right}
    hits: list[int] = []  # the bare name of a coalesced key is found on both sides, and is one column
    exists = False
    for s in sides:
        index = schemas[s].find(name)
        if index is None or (s == "right" and request.how in ("semi", "anti")):
            continue
        exists = True
        for i, c in enumerate(columns):
            if getattr(c, s) == index and c.source in (s, "coalesced") and i not in hits:
                hits.append(i)
    if len(hits) > 1:
        raise AmbiguousColumnError(
            f"{what} names {name!r}, which both sides have", help=f"write 'left.{name}' or 'right.{name}'"
        )
    if not exists:
        raise _unknown(column, name, request, what)
    return hits[0] if hits else None


def _unknown(column: str, name: str, request: OutputRequest, what: str) -> UnknownColumnError:
    sides = [("left", request.left)]
    if request.how not in ("semi", "anti"):
        sides.append(("right", request.right))
    available = [(f"{side}.{n}", n) for side, schema in sides for n in schema.names]
    close = find_similar(name, [n for _, n in available], most=1)
    similar = [repr(address) for address, n in available if n in close]  # both sides may have the name
    columns = format_list(address for address, _ in available)
    help_ = f"did you mean {' or '.join(similar)}?" if similar else f"columns are {columns}"
    return UnknownColumnError(f"{what} names {column!r}, which is not a column of the join", help=help_)


def _kept(columns: list[OutputColumn], request: OutputRequest) -> list[OutputColumn]:
    project = request.project
    if project.keep is not None:
        kept: set[int] = set()
        for name in project.keep:
            at = _address(name, columns, request, "keep")
            if at is None:
                raise JoinSpecError(
                    f"keep names {name!r}, which is not in the result",
                    code="W0307",
                    help="keep right keys with right_keys='keep', and the right order column with keep_right_order=True",
                )
            kept.add(at)
        columns = [c for i, c in enumerate(columns) if i in kept]
    dropped = {_address(name, columns, request, "drop") for name in project.drop}
    columns = [c for i, c in enumerate(columns) if i not in dropped]
    if not columns:
        raise JoinSpecError("keep and drop leave no column", code="W0307", help="keep a column, or drop one fewer")
    return columns


def _renamed(columns: list[OutputColumn], request: OutputRequest) -> tuple[list[OutputColumn], frozenset[int]]:
    done: set[int] = set()
    pairs: Iterable[tuple[str, str]] = request.project.rename  # type: ignore[assignment]  # the spec stores pairs
    for old, new in pairs:
        at = _address(old, columns, request, "rename")
        if at is None:
            raise JoinSpecError(
                f"rename names {old!r}, which is not in the result",
                code="W0307",
                help=f"columns of the result are {format_list(c.name for c in columns)}",
            )
        if at in done:
            raise JoinSpecError(f"rename names {old!r} twice", code="W0307", help="give each column one new name")
        columns[at] = replace(columns[at], name=new, reason=f"renamed from {columns[at].name!r}")
        done.add(at)
    return columns, frozenset(done)


def _check_collisions(columns: Sequence[OutputColumn], renamed: frozenset[int], request: OutputRequest) -> None:
    """Raise for names that both sides have, unless suffixes are requested.

    Right keys with ``right_keys="keep"``, and the right order column of a temporal join, get a
    suffix without a request.
    """
    if request.project.effective_suffixes is not None:
        return
    keys = {k.right for k in request.keys}
    if request.right_order is not None:
        keys.add(request.right_order)
    colliding = [
        places[-1]
        for places in _places(columns, request).values()
        if len(places) > 1 and not any(columns[i].source == "right" and columns[i].right in keys for i in places)
    ]
    if colliding:
        raise _collision(columns, colliding, _suffixes_that_pass(columns, renamed, request), request)


def _add_suffixes(
    columns: Sequence[OutputColumn], renamed: frozenset[int], suffixes: tuple[str, str], request: OutputRequest
) -> tuple[OutputColumn, ...]:
    """Return the columns with suffixes on colliding names, and the indicator."""
    named = list(columns)
    clashing = {i for places in _places(columns, request).values() if len(places) > 1 for i in places}
    for i in clashing - renamed:
        column = columns[i]
        suffix = suffixes[1] if column.source == "right" else suffixes[0]
        if suffix:
            named[i] = replace(
                column, name=column.name + suffix, reason=f"suffix {suffix!r}: both sides have {column.name!r}"
            )
    if request.project.indicator is not None:
        name = parse_name(request.project.indicator, what="indicator")
        named.append(OutputColumn(name=name, dtype=STRING, nullable=False, source="indicator", reason="requested"))
    return tuple(named)


def _places(columns: Sequence[OutputColumn], request: OutputRequest) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for i, column in enumerate(columns):
        places.setdefault(fold(column.name, case_sensitive=request.left.case_sensitive), []).append(i)
    return places


def _twice(columns: Sequence[OutputColumn], request: OutputRequest) -> list[str]:
    """Return the names that more than one column has, sorted."""
    return sorted(columns[p[-1]].name for p in _places(columns, request).values() if len(p) > 1)


def _suffixes_that_pass(
    columns: Sequence[OutputColumn], renamed: frozenset[int], request: OutputRequest
) -> tuple[str, str] | None:
    """Return the first pair of suffixes, plain ones first, under which no name occurs twice."""
    # Repeated, because a side may already have a column `x_right`; a help that fails when pasted is worse than none.
    for left, right in (DEFAULT_SUFFIXES, ("_left", "_right")):
        for times in range(1, len(columns) + 2):
            pair = left * times, right * times
            if not _twice(_add_suffixes(columns, renamed, pair, request), request):
                return pair
    return None


def _remedy(suffixes: tuple[str, str] | None, request: OutputRequest) -> str:
    if suffixes is None:
        return "rename one with project=JoinProjection(rename={...}) or drop one"
    if replace(request.project, suffixes=None) != JoinProjection():
        return f"pass project=JoinProjection(..., suffixes={suffixes!r})"
    return f"pass suffixes={suffixes!r}"


def _collision(
    columns: Sequence[OutputColumn], clashing: Sequence[int], suffixes: tuple[str, str] | None, request: OutputRequest
) -> ColumnCollisionError:
    names = sorted({columns[i].name for i in clashing})
    help_ = [why for index, why in request.displaced.items() if index in {columns[i].right for i in clashing}]
    help_.append(_remedy(suffixes, request))
    return ColumnCollisionError(f"the join would produce duplicate columns: {', '.join(names)}", help="\n".join(help_))


def _duplicates(twice: Sequence[str], suffixes: tuple[str, str] | None, request: OutputRequest) -> ColumnCollisionError:
    return ColumnCollisionError(
        f"the result would have two columns named {', '.join(map(repr, twice))}", help=_remedy(suffixes, request)
    )
