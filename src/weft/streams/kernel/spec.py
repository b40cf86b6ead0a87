"""The specification of a stream join, its counters, and the checksums of its files: plain values.

SQL, plans and the kernel share these records, so a policy, a limit or a bound has one name from the text of a job
to the worker.  Times are microseconds since the epoch, UTC.  This module needs neither numpy nor pyarrow.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from types import ModuleType
from typing import Any, Literal

FORMAT = 2
"""The layout of the state on disk that this kernel writes; it reads that of format 1."""
FOREVER = 2**63 - 1
"""A clock after all times: no more rows can arrive."""
NEVER = -(2**63)
"""A clock before all times: the side has had no row yet."""
MAX_GROUP_BYTES = 2 * 1024**3
"""The maximum number of bytes of the state of a group and its rows of one batch together."""

MATCHED, EXPIRED, PADDED, GONE = 1, 2, 4, 8
"""Bits of a row's flag: has matched; kept for redrive only; was emitted as unmatched; is removed."""
PAIR, LEFT_UNMATCHED, RIGHT_UNMATCHED = 0, 1, 2
"""The values of the column ``kind`` of the output."""

Side = Literal["left", "right"]
StreamHow = Literal["inner", "left", "right", "full"]
Emit = Literal["changes", "final"]
Late = Literal["side_output", "drop", "fail"]
Malformed = Literal["reject", "fail"]
MissingTime = Literal["reject", "wall_clock", "fail"]
Eviction = Literal["oldest", "fail"]
Kind = Literal["interval", "tumbling", "sliding", "session", "table"]
Reason = Literal["MALFORMED", "NO_EVENT_TIME", "LATE", "DUPLICATE", "EVICTED", "ABANDONED"]


class KernelProblem(Exception):  # noqa: N818  # the driver raises it again as an error of Weft
    """A batch that cannot continue; the driver raises it again as ``StreamError`` with its code."""

    def __init__(self, code: str, message: str, help: str) -> None:
        super().__init__(code, message, help)
        self.code, self.message, self.help = code, message, help

    def __str__(self) -> str:
        """Return the problem in one line; workers' errors travel as text."""
        return f"{self.code}: {self.message} (help: {self.help})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """For each side, a lower bound of the event times that can still arrive.

    >>> Clock(left=NEVER, right=NEVER).least == NEVER
    True
    """

    left: int
    right: int

    @property
    def least(self) -> int:
        """The smaller of the two."""
        return min(self.left, self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Which times match: ``right.t`` in ``left.t + [lower, upper]``, a shared window, a session, any."""

    kind: Kind
    lower: int = 0
    upper: int = 0
    size: int = 0
    slide: int = 0  # of tumbling windows: their size, or 0
    gap: int = 0
    per_window: bool = False  # sliding: a row for each shared window instead of one for each pair

    @property
    def has_windows(self) -> bool:
        """Whether pairs share a window of a fixed size."""
        return self.kind in ("tumbling", "sliding")

    @property
    def least(self) -> int:
        """The least difference right time - left time of a pair.

        >>> Reach(kind="tumbling", size=60).least, Reach(kind="interval", lower=-5, upper=9).least
        (-59, -5)
        """
        # Windows are half open, so the times of two rows in one window differ by less than its size.
        return 1 - self.size if self.has_windows else self.lower

    @property
    def greatest(self) -> int:
        """The greatest difference right time - left time of a pair."""
        return self.size - 1 if self.has_windows else self.upper


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many rows a side of a join may keep, and what happens above that; None means unlimited."""

    max_state_rows: int | None = None
    max_rows_per_key: int | None = None
    eviction: Eviction = "oldest"


@dataclass(frozen=True, slots=True, kw_only=True)
class SideTask:
    """The policies and limits of one side of a join."""

    name: str
    outer: bool
    raw: bool  # rows come from a source, so the policies apply to them
    late: Late = "side_output"
    missing_event_time: MissingTime = "reject"
    malformed: Malformed = "reject"
    dedup: tuple[str, ...] = ()  # names of children
    limits: Limits = Limits()  # of this task
    retention: int = 0  # how long an expired row is kept for redrive


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """A condition on pairs besides keys and time, in one of two forms.

    ``program`` is prefix code that runs on whole columns: ``("ref", "left" | "right", child)``,
    ``("lit", value, type)`` with the type as `weft.core.types` writes it, ``(op, a, b)`` with op of
    ``= <> < <= > >= and or``, ``("not", a)``, ``("isnull", a)``.  NULL is unknown, and a pair needs true.
    Operands of a comparison have one type.  ``rows`` is the slow general form: it gets the children of
    both sides as dicts and returns one boolean for each pair.
    """

    program: tuple[Any, ...] | None = None
    rows: Callable[[list[dict[str, Any]], list[dict[str, Any]]], list[bool]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTask:
    """One join of a statement, the same in every group and batch."""

    number: int
    reach: Reach
    left: SideTask
    right: SideTask
    keys: tuple[str, ...]  # names of the children, equal in both structs
    emit: Emit = "changes"
    residual: Residual | None = None
    window_columns: bool = False
    format: int = FORMAT

    @property
    def final(self) -> bool:
        """Whether a row is emitted only when it can no longer change (EMIT FINAL)."""
        return self.emit == "final"

    def side(self, side: Side) -> SideTask:
        """Return the task of a side."""
        return self.left if side == "left" else self.right


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """The ledger of one side, from the first batch on; each number is measured on its own.

    >>> Counters(in_=3, matched=2, late=1).balances
    True
    """

    in_: int = 0
    matched: int = 0
    waiting: int = 0
    unmatched: int = 0
    late: int = 0
    rejected: int = 0
    evicted: int = 0

    @property
    def balances(self) -> bool:
        """Whether every row that came in is counted exactly once."""
        parts = self.matched + self.waiting + self.unmatched + self.late + self.rejected + self.evicted
        return self.in_ == parts

    def to_dict(self) -> dict[str, int]:
        """Return the counters by the names of the ledger (``in``, ``matched`` ...)."""
        return {name.rstrip("_"): value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, document: dict[str, int]) -> Counters:
        """Return what `to_dict` wrote."""
        return cls(**{f.name: document[f.name.rstrip("_")] for f in fields(cls)})


@dataclass(frozen=True, slots=True, kw_only=True)
class SideStats:
    """Statistics of one side of a group since the first batch, and its current size."""

    records_stored: int = 0
    records_expired: int = 0
    records_evicted: int = 0
    lookups: int = 0
    matches_found: int = 0
    current_size: int = 0
    peak_size: int = 0
    current_keys: int = 0
    current_bytes: int = 0
    missing_key_count: int = 0
    missing_time_count: int = 0
    limit_hits: int = 0
    min_time: int | None = None  # least event time of rows that were not late
    max_time: int | None = None  # greatest event time so far; it advances the watermark of the side
    max_lateness: int = 0  # largest distance of a late row from the watermark

    def to_dict(self) -> dict[str, int | None]:
        """Return the figures by name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> SideStats:
        """Return what `to_dict` wrote."""
        return cls(**document)


Entry = Mapping[str, Any]
"""The state of a range of hashes, as a commit lists it; see `weft.streams.kernel.state_files`."""


def list_files(entry: Entry) -> dict[str, str]:
    """Return the files of an entry, relative to the folder of the join, with their checksums."""
    files = {}
    for side in ("left", "right"):
        mine = entry[side]
        more = [mine.get(kind) for kind in ("full", "sessions", "seen")]
        for one in (*mine["segments"], *mine["flags"], *(m for m in more if m)):
            files[one["path"]] = one["sum"]
    return files


# Checksums detect bytes that changed on disk before they are used.  A document contains its own checksum, an index those
# of the files that it lists.  Files of earlier versions have none and are used unchecked.
CHECKSUM = "checksum"
_CHECKED = "_weft_checked"
"""The name of a module without code that holds the files that a process has checked."""


def checksum(content: Any) -> str:
    """Return the checksum of bytes.

    >>> checksum(b"123456789")
    'cbf43926'
    """
    return f"{zlib.crc32(content):08x}"


def with_checksum(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with the checksum of everything else in it."""
    return {**document, CHECKSUM: _document_checksum(document)}


def is_intact(document: Mapping[str, Any]) -> bool:
    """Return whether a document is unchanged; one without a checksum counts as intact.

    >>> (is_intact(with_checksum({"a": 1})), is_intact({**with_checksum({"a": 1}), "a": 2}), is_intact({"a": 1}))
    (True, False, True)
    """
    return CHECKSUM not in document or document[CHECKSUM] == _document_checksum(document)


def _document_checksum(document: Mapping[str, Any]) -> str:
    # Compare what JSON reads back: in it, keys are strings and tuples are lists.
    rest = json.loads(json.dumps({k: v for k, v in document.items() if k != CHECKSUM}))
    return checksum(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode())


def checked_files() -> dict[str, dict[str, str]]:
    """Return the files whose checksums this process has compared, by join and range of hashes.

    Files of the state never change, so a process that joins many batches reads each of them in full once.
    """
    # The kernel is pickled by value, so every join that a worker loads has variables of this module of its own.
    module: Any = sys.modules.setdefault(_CHECKED, ModuleType(_CHECKED))
    if not hasattr(module, "files"):
        module.files = {}
    files: dict[str, dict[str, str]] = module.files
    return files
