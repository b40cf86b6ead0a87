"""Keys of a natural join: names that both sides share, replaced and extended by aliases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from weft import expr
from weft.core.findings import ErrorCollector
from weft.core.names import canonical_name, find_similar, fold, format_list, parse_name, suggest
from weft.core.types import Schema
from weft.errors import NoJoinKeysError, UnknownColumnError
from weft.joins.resolve.resolved import Origin
from weft.joins.spec.asof import AsofOrder, read_order_expression
from weft.joins.spec.join import KeyPairs


@dataclass(frozen=True, slots=True)
class NaturalKeys:
    """The inferred key pairs, how each came about, and what was left out."""

    pairs: KeyPairs = ()
    origins: tuple[Origin, ...] = ()
    dropped: KeyPairs = ()
    displaced: Mapping[int, str] = field(default_factory=dict)
    """Right columns that are no longer keys because of an alias, with the reason."""
    notes: tuple[str, ...] = ()
    """Warnings for the user."""


@dataclass(slots=True)
class _Key:
    left: str
    right: str
    origin: Origin


def infer_natural_keys(
    left: Schema,
    right: Schema,
    *,
    aliases: KeyPairs = (),
    keys: KeyPairs = (),
    exclude_shared: Sequence[str] = (),
    strict: bool = True,
    order: AsofOrder | None = None,
    parameters: Sequence[str] = (),
) -> NaturalKeys:
    """Infer the keys: shared columns in left order, aliases in call order, then `keys`.

    An alias of a shared column replaces it.  Order columns of an as-of join are never keys.  With
    ``strict=False`` an alias of an unknown column is dropped, with a note.
    """
    mistakes = ErrorCollector()
    inferred = [
        _Key(name, right.fields[right.index(name)].name, "shared")
        for name in _shared(left, right, exclude_shared, order, mistakes)
    ]
    displaced: dict[int, str] = {}
    dropped: list[tuple[str, str]] = []
    written: list[tuple[Origin, tuple[str, str]]] = [("alias", pair) for pair in aliases]
    for origin, pair in (*written, *(("keys", pair) for pair in keys)):
        unknown = ErrorCollector()
        names: list[str] = []
        for schema, name, side in ((left, pair[0], "left"), (right, pair[1], "right")):
            with unknown.collect():
                # Only the left name is a keyword of the call, and so may be a misspelled parameter.
                hints = parameters if side == "left" else ()
                names.append(schema.fields[_index(schema, name, f"{side} relation", hints)].name)
        if not unknown:
            _place(inferred, displaced, right, _Key(names[0], names[1], origin))
        elif strict:
            mistakes.extend(unknown)
        else:
            dropped.append(pair)
    mistakes.raise_all()
    if not inferred:
        raise _no_keys(left, right, dropped, exclude_shared)
    return NaturalKeys(
        pairs=tuple((canonical_name(f.left), canonical_name(f.right)) for f in inferred),
        origins=tuple(f.origin for f in inferred),
        dropped=tuple(dropped),
        displaced=displaced,
        notes=tuple(_notes(left, inferred, dropped)),
    )


def _shared(
    left: Schema, right: Schema, exclude: Sequence[str], order: AsofOrder | None, mistakes: ErrorCollector
) -> tuple[str, ...]:
    # Spark compares names under its setting; two names that it takes for one must be one key here.
    def folded(name: str) -> str:
        return fold(name, case_sensitive=left.case_sensitive)

    shared = [n for n in left.names if n in right]
    known, excluded = set(map(folded, shared)), set()
    for written in exclude:
        with mistakes.collect():
            name = parse_name(written, what="exclude_shared")
            excluded.add(folded(name))
            if folded(name) not in known:
                raise UnknownColumnError(
                    f"exclude_shared names {written!r}, which is not a shared column",
                    help=suggest(name, shared, "shared columns are", most=1),
                )
    if order is not None:
        excluded |= set(map(folded, (*_order_names(order.left, left), *_order_names(order.right, right))))
    return tuple(n for n in shared if folded(n) not in excluded)


def _order_names(order: str, schema: Schema) -> tuple[str, ...]:
    """Return the name of an order column, or the names of the columns that its expression reads."""
    name = parse_name(order)
    tree = None if name in schema else read_order_expression(name)
    return (name,) if tree is None else tuple(ref.name for ref in expr.references(tree))


def _index(schema: Schema, written: str, side: str, parameters: Sequence[str]) -> int:
    # A keyword can be any string, so a column with exactly this name comes before a parsed name.
    literal = schema.find(written) if isinstance(written, str) else None
    if literal is not None:
        return literal
    close = find_similar(written, parameters, most=1)
    hint = f"or the parameter {close[0]}=?" if close else ""
    return schema.index(parse_name(written, what="alias"), side=side, hint=hint)


def _place(inferred: list[_Key], displaced: dict[int, str], right: Schema, new: _Key) -> None:
    """Replace the shared key of the same left column by `new`, or append it."""
    for i, old in enumerate(inferred):
        if (old.left, old.right) == (new.left, new.right) and old.origin != "shared":
            return  # the same pair again; the case of a name may differ
        if old.left == new.left and old.origin == "shared":
            if old.right != new.right:
                displaced[right.index(old.right)] = (
                    f"right column {old.right!r} is no longer a key because of {new.left}={new.right!r}"
                )
            inferred[i] = new
            return
    inferred.append(new)


def _no_keys(
    left: Schema, right: Schema, dropped: Sequence[tuple[str, str]], excluded: Sequence[str]
) -> NoJoinKeysError:
    gone = f"; dropped because strict=False: {dict(dropped)}" if dropped else ""
    help_ = "name a pair as left_column='right_column'; for all pairs call cross_join"
    if excluded:
        gone += f"; left out by exclude_shared: {format_list(excluded)}"
        help_ = f"take a name out of exclude_shared={tuple(excluded)!r}\n{help_}"
        what = "the relations share no other column to join on"
    else:
        what = "the relations share no column to join on"
    return NoJoinKeysError(
        f"{what}{gone}: left has {format_list(left.names)}; right has {format_list(right.names)}", help=help_
    )


def _notes(left: Schema, inferred: Sequence[_Key], dropped: Sequence[tuple[str, str]]) -> Iterator[str]:
    if dropped:
        aliases = ", ".join(f"{a}={b!r}" for a, b in dropped)
        yield f"strict=False: the join ignores {aliases}: unknown columns"
    for key in inferred:
        dtype = left[key.left].dtype
        if key.origin == "shared" and (dtype.is_fraction or dtype.is_nested):
            yield (
                f"shared column {key.left!r} of type {dtype} became a key; exclude_shared=({key.left!r},) excludes it"
            )
