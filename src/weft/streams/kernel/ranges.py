"""Ranges of hashes: which task of a batch has the rows of a key.

The tasks of a batch share the hashes of all keys evenly, each an unbroken range of them.  The state is sorted by hash,
so any number of tasks finds its rows in the files of any other number: a job continues on more or fewer cores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_HALF = 2**31
_LEAST, _GREATEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class HashRange:
    """The hashes from `first` to `last`, both included."""

    first: int = _LEAST
    last: int = _GREATEST

    def cut(self, hashes: NDArray[np.int64]) -> tuple[int, int]:
        """Return the positions [start, stop) of sorted hashes that are in the range.

        >>> HashRange(2, 7).cut(np.array([1, 2, 2, 7, 8]))
        (1, 4)
        """
        start = np.searchsorted(hashes, self.first)
        return int(start), int(np.searchsorted(hashes, self.last, side="right"))

    def meets(self, other: HashRange) -> bool:
        """Return whether two ranges have a hash in common."""
        return self.first <= other.last and other.first <= self.last


ALL = HashRange()
"""Every hash."""


def range_of(task: int, tasks: int) -> HashRange:
    """Return the range of a task.

    >>> range_of(0, 2), range_of(1, 2)
    (HashRange(first=-9223372036854775808, last=-1), HashRange(first=0, last=9223372036854775807))
    """
    return HashRange(_first_hash(task, tasks), _first_hash(task + 1, tasks) - 1)


def _first_hash(task: int, tasks: int) -> int:
    # Rounded up: the least number of the upper 32 bits that `find_tasks` gives to the task.
    return (-(-(task << 32) // tasks) - _HALF) << 32


def find_tasks(hashes: NDArray[np.int64], tasks: int) -> NDArray[np.int64]:
    """Return the task of each hash.

    >>> find_tasks(np.array([-(2**63), -1, 0, 2**63 - 1]), 2).tolist()
    [0, 0, 1, 1]
    """
    # The upper 32 bits decide, so that Spark computes the same number without an overflow.
    return ((hashes >> 32) + _HALF) * tasks >> 32
