"""Numbers about joins: matches of a run, Spark's estimates of two sides, and facts from ``statistics="sample"``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.core.documents import Document
from weft.joins.picture import LEFT, RIGHT, Picture, draw_shares, format_share

_LISTED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyKey:
    """A key with more rows than a task should have, and the times that cut its rows into even parts.

    Without equal keys all rows are one key with no `values`.  Timestamps are microseconds since 1970.
    `carried` is whether a part needs right rows of other parts.
    """

    values: tuple[Any, ...]
    share: float
    cuts: tuple[Any, ...] = ()
    carried: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """How many rows each side has, and the keys that have most of them.

    Rows that cannot match are not counted.  `sampled` is the number of rows read; the counts are exact
    if that is all of them, and estimates otherwise.

    >>> facts = Facts(
    ...     left_rows=10, right_rows=10, sampled=20, partitions=8, heavy=(HeavyKey(values=("A",), share=0.95),)
    ... )
    >>> print(facts)
    10 left and 10 right rows; key 'A' has 95 % of them
    >>> facts.skewed
    (HeavyKey(values=('A',), share=0.95, cuts=(), carried=False),)
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
        """Whether every row was read."""
        return self.sampled >= self.left_rows + self.right_rows

    def __str__(self) -> str:
        about = "" if self.is_exact else "about "
        parts = [f"{about}{self.left_rows:,} left and {self.right_rows:,} right rows"]
        keyed = [k for k in self.skewed if k.values]
        keys = [f"key {', '.join(map(repr, k.values))} has {k.share:.0%} of them" for k in keyed[:_LISTED]]
        parts += [text.replace("%", " %") for text in keys]
        if len(keyed) > _LISTED:
            parts.append(f"{len(keyed) - _LISTED} more have more than their share")
        return "; ".join(parts)


MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """Spark's estimates of both sides, and what the session can do.

    Sizes are in bytes, None if Spark has no useful estimate.  `cores` is how many tasks run at once,
    None if unknown, and `partitions` the number of shuffle partitions.  `no_kernel` is the reason why
    rows cannot be sent to Python, empty if they can.
    """

    left_bytes: int | None = None
    right_bytes: int | None = None
    may_broadcast: bool = False
    cores: int | None = None
    partitions: int | None = None
    no_kernel: str = "the session is not known"
    worker_setting: str = ""
    """The setting that lets workers run the kernel."""

    @property
    def both_bytes(self) -> int | None:
        """The size of both sides together, None unless both are known."""
        if self.left_bytes is None or self.right_bytes is None:
            return None
        return self.left_bytes + self.right_bytes


UNKNOWN = SessionFacts()


def format_size(size: int) -> str:
    """Return a size in KB, MB or GB.

    >>> format_size(2_500), format_size(31 * 1024 * 1024), format_size(3 * 1024**3)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchCounts(Document):
    """How many rows of each side have a match, before the join is used; `inspect_matches` returns it.

    Parameters
    ----------
    left_rows, right_rows
        How many rows each side has.  Required.
    pairs
        How many pairs of rows match.  Required.
    left_matched, right_matched
        How many rows of each side have a match.  Required.
    most_for_left, most_for_right
        The most matches that one row of a side has.  Required.

    Examples
    --------
    >>> counts = MatchCounts(
    ...     left_rows=100,
    ...     right_rows=40,
    ...     pairs=120,
    ...     left_matched=97,
    ...     right_matched=40,
    ...     most_for_left=3,
    ...     most_for_right=9,
    ... )
    >>> print(counts)
    97 of 100 left rows match (97.0 %), 40 of 40 right rows match (100 %)
    120 pairs: at most 3 for a left row and 9 for a right row
    >>> counts.match_rate, counts.fan_out
    (0.97, 1.23)
    """

    left_rows: int
    right_rows: int
    pairs: int
    left_matched: int
    right_matched: int
    most_for_left: int
    most_for_right: int

    @property
    def match_rate(self) -> float:
        """The share of left rows that have a match, from 0 to 1; 1 without left rows."""
        return self.left_matched / self.left_rows if self.left_rows else 1.0

    @property
    def fan_out(self) -> float:
        """How many rows a left join returns for each left row, on average; 1 without left rows."""
        alone = self.left_rows - self.left_matched
        return (self.pairs + alone) / self.left_rows if self.left_rows else 1.0

    def __str__(self) -> str:
        left = f"{self.left_matched:,} of {self.left_rows:,} left rows match"
        right = f"{self.right_matched:,} of {self.right_rows:,} right rows match"
        return (
            f"{left} ({format_share(self.left_matched, self.left_rows)}), "
            f"{right} ({format_share(self.right_matched, self.right_rows)})\n"
            f"{self.pairs:,} pairs: at most {self.most_for_left:,} for a left row and {self.most_for_right:,} for a "
            "right row"
        )

    def plot(self) -> Picture:
        """Return the shares as a picture."""
        return draw_shares(
            "Rows with a match",
            [
                ("left rows", self.left_matched, self.left_rows, LEFT),
                ("right rows", self.right_matched, self.right_rows, RIGHT),
            ],
            notes=[
                f"A left join returns {self.fan_out:,.2f} rows for each left row.",
                f"At most {self.most_for_left:,} right rows match a left row, and {self.most_for_right:,} left rows a right row.",
            ],
        )

    def _repr_html_(self) -> str:
        return self.plot().to_svg()
