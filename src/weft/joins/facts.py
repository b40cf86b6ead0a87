"""What a sample of both sides told about a join, asked for with ``statistics="sample"``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyKey:
    """A key with more rows than a task should have, and the times that cut its rows into even parts.

    Without an equal key all rows count as one, whose `values` are empty.  Points in time are
    microseconds since 1970.  `told` says that the parts must be told of right rows of other parts.
    """

    values: tuple[Any, ...]
    share: float
    cuts: tuple[Any, ...] = ()
    told: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """How many rows each side has, and the keys that have most of them.

    Rows that can match nothing are not counted.  `sampled` is how many rows were looked at; when
    that is all of them the numbers are exact, otherwise estimates.

    >>> told = Facts(
    ...     left_rows=10,
    ...     right_rows=10,
    ...     sampled=20,
    ...     partitions=8,
    ...     heavy=(HeavyKey(values=("A",), share=0.95),),
    ... )
    >>> print(told)
    10 left and 10 right rows; key 'A' has 95 % of them
    >>> told.skewed
    (HeavyKey(values=('A',), share=0.95, cuts=(), told=False),)
    """

    left_rows: int
    right_rows: int
    sampled: int
    partitions: int
    heavy: tuple[HeavyKey, ...] = ()

    @property
    def skewed(self) -> tuple[HeavyKey, ...]:
        """The keys that have more rows than a shuffle partition should get."""
        return tuple(k for k in self.heavy if k.share * self.partitions > 1)

    @property
    def is_exact(self) -> bool:
        """Whether every row was looked at."""
        return self.sampled >= self.left_rows + self.right_rows

    def __str__(self) -> str:
        about = "" if self.is_exact else "about "
        told = [f"{about}{self.left_rows:,} left and {self.right_rows:,} right rows"]
        keyed = [k for k in self.skewed if k.values]
        shown = [f"key {', '.join(map(repr, k.values))} has {k.share:.0%} of them" for k in keyed[:_SHOWN]]
        told += [text.replace("%", " %") for text in shown]
        if len(keyed) > _SHOWN:
            told.append(f"{len(keyed) - _SHOWN} more have more than their share")
        return "; ".join(told)
