"""JoinProjection: the columns of a result and their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from weft.core.names import is_plain_text, parse_name
from weft.errors import ArgumentError, JoinSpecError
from weft.joins.spec.serial import Serial
from weft.joins.spec.values import RightKeys, check_bool, check_choice

DEFAULT_SUFFIXES = ("", "_right")


@dataclass(frozen=True)
class JoinProjection(Serial):
    """The columns of a result and their names.

    Parameters
    ----------
    suffixes
        A pair ``(left, right)`` that is added to the names of columns that both sides have.  None (default) makes
        such a collision an error.
    allow_collisions
        Whether columns may collide without `suffixes`: ``("", "_right")`` are used then.  False by default.
    right_keys
        ``"auto"`` (default) drops right keys; on right and full joins the left key is
        ``coalesce(left, right)``.  ``"keep"`` keeps all right keys, ``"drop"`` drops them.
    keep
        The columns to keep: ``"left.x"``, ``"right.x"``, or a bare name that only one side has.  None (default)
        keeps all.
    drop
        The columns to drop, named in the same way.  Empty by default.
    keep_right_order
        Whether the right order column of a temporal join is kept.  True by default.
    rename
        A mapping from ``"left.x"``, ``"right.x"`` or a bare name to the name in the result.  Empty by default.
    indicator
        Name of an extra column with ``both``, ``left_only`` or ``right_only``.  None (default) adds none.

    Examples
    --------
    >>> import weft
    >>> from weft.core.types import Schema
    >>> orders, customers = Schema.of(ref="long", name="string"), Schema.of(id="long", name="string")
    >>> project = JoinProjection(suffixes=("", "_customer"), indicator="sides")
    >>> weft.JoinSpec([("ref", "id")]).bind(orders, customers, project=project).schema.names
    ('ref', 'name', 'name_customer', 'sides')
    """

    TYPE: ClassVar[str] = "projection"

    suffixes: tuple[str, str] | None = None
    allow_collisions: bool = False
    right_keys: RightKeys = "auto"
    keep: Sequence[str] | None = None
    drop: Sequence[str] = ()
    keep_right_order: bool = True
    rename: Mapping[str, str] | Sequence[tuple[str, str]] = ()
    indicator: str | None = None

    def __post_init__(self) -> None:
        if self.suffixes is not None:
            object.__setattr__(self, "suffixes", _checked_suffixes(self.suffixes))
        check_bool(self.allow_collisions, "allow_collisions")
        check_bool(self.keep_right_order, "keep_right_order")
        check_choice(self.right_keys, RightKeys, "right_keys")
        if self.keep is not None:
            object.__setattr__(self, "keep", _column_list(self.keep, "keep"))
        object.__setattr__(self, "drop", _column_list(self.drop, "drop"))
        object.__setattr__(self, "rename", _checked_rename(self.rename))
        if self.indicator is not None:
            parse_name(self.indicator, what="indicator")

    @property
    def effective_suffixes(self) -> tuple[str, str] | None:
        """The suffixes that collisions get, or None when a collision is an error."""
        return self.suffixes or (DEFAULT_SUFFIXES if self.allow_collisions else None)


def _checked_suffixes(suffixes: object) -> tuple[str, str]:
    if isinstance(suffixes, str) or not isinstance(suffixes, Sequence):
        raise ArgumentError(
            f"suffixes must be a pair of strings, not {suffixes!r}", help="write suffixes=('', '_right')"
        )
    if len(suffixes) != 2:
        raise JoinSpecError(
            f"suffixes has {len(suffixes)} strings, a pair has 2", code="W0307", help="write suffixes=('', '_right')"
        )
    for suffix in suffixes:
        if not isinstance(suffix, str):
            raise ArgumentError(
                f"a suffix must be a string, not {type(suffix).__name__}", help="write suffixes=('', '_right')"
            )
        if not is_plain_text(suffix):
            raise JoinSpecError(
                f"suffix {suffix!r} contains a control character",
                code="W0307",
                help="write letters, digits and underscores, for example '_right'",
            )
    return suffixes[0], suffixes[1]


def _column_list(columns: object, what: str) -> tuple[str, ...]:
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise ArgumentError(
            f"{what} must be a sequence of column names, not {columns!r}", help=f"write {what}=['column']"
        )
    for column in columns:
        split_side(column, what)
    return tuple(columns)


def _checked_rename(rename: object) -> tuple[tuple[str, str], ...]:
    if isinstance(rename, Mapping):
        rename = tuple(rename.items())  # pairs, because specs are hashed
    if isinstance(rename, str) or not isinstance(rename, Sequence):
        raise ArgumentError(
            f"rename must be a mapping of old to new names, not {rename!r}", help="write rename={'old': 'new'}"
        )
    for pair in rename:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ArgumentError(f"rename must hold (old, new) pairs, not {pair!r}", help="write rename={'old': 'new'}")
        split_side(pair[0], "rename")
        if not isinstance(pair[1], str):
            raise ArgumentError(
                f"rename {pair[0]!r}: the new name must be a string, not {type(pair[1]).__name__}",
                help=f"write rename={{{pair[0]!r}: 'new'}}",
            )
        if not pair[1].strip() or not is_plain_text(pair[1]):
            raise JoinSpecError(
                f"rename to {pair[1]!r} is not a valid column name",
                code="W0303",
                help="write a name with visible characters and without control characters",
            )
    return tuple((old, new) for old, new in rename)


def split_side(column: object, what: str) -> tuple[str | None, str]:
    """Split ``left.x``, ``right.x`` or ``x`` into a side, None if there is none, and a name.

    >>> split_side("right.status", "drop"), split_side("`a.b`", "drop")
    (('right', 'status'), (None, 'a.b'))
    """
    if isinstance(column, str):
        # Only these two words are sides; any other dot is an error of `parse_name`.
        head, dot, tail = column.partition(".")
        if dot and head.casefold() in ("left", "right"):
            return head.casefold(), parse_name(tail, what=what)
    return None, parse_name(column, what=what)
