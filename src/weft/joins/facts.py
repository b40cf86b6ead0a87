"""Numbers about joins: matches of a run, Spark's estimates of two sides, and facts from ``statistics="sample"``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.core.documents import Document

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


MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """Spark's estimates of both sides, and what the session can do.

    Sizes are bytes, None where Spark has no estimate worth the name; `cores` is how many tasks run
    at once, None where the session does not say; `partitions` are those of a shuffle.  `no_kernel`
    says why rows cannot go through Python, and is empty where they can.
    """

    left_bytes: int | None = None
    right_bytes: int | None = None
    may_broadcast: bool = False
    cores: int | None = None
    partitions: int | None = None
    no_kernel: str = "nothing is known of the session"
    worker_setting: str = ""
    """What to set so that workers can run the kernel."""

    @property
    def both_bytes(self) -> int | None:
        """The size of both sides together, None unless both are known."""
        if self.left_bytes is None or self.right_bytes is None:
            return None
        return self.left_bytes + self.right_bytes


UNKNOWN = SessionFacts()


def in_words(size: int) -> str:
    """Return a size as people say it.

    >>> in_words(2_500), in_words(31 * 1024 * 1024), in_words(3 * 1024**3)
    ('3 KB', '31 MB', '3.0 GB')
    """
    if size < MIB:
        return f"{-(-size // 1024)} KB"
    return f"{size / MIB:.0f} MB" if size < 1024 * MIB else f"{size / MIB / 1024:.1f} GB"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinCounts(Document):
    """How many of the rows that an operation changed have a match, none, or more than one.

    >>> JoinCounts(alias="fx", matched=9, unmatched=1, multiple=0).to_dict()
    {'alias': 'fx', 'matched': 9, 'unmatched': 1, 'multiple': 0}
    """

    alias: str
    matched: int
    unmatched: int = 0
    multiple: int = 0
