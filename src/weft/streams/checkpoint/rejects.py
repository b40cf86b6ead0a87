"""Rejected rows as they lie below a checkpoint: which side, why, when, and the row itself.

::

    rejects/<side>/<batch>-j<join>-<group>.parquet
        side reason event_time watermark batch group matched raw row{..}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from weft.core.documents import Document, Key, format_micros
from weft.core.frozen import EMPTY
from weft.streams.checkpoint.durable import damaged_file
from weft.streams.checkpoint.folder import Checkpoint, read_job_record
from weft.streams.checkpoint.ledger import side_name
from weft.streams.checkpoint.manifest import last_batch

REASONS = ("LATE", "EVICTED", "DUPLICATE", "NO_EVENT_TIME", "MALFORMED", "ABANDONED")
_NAME = re.compile(r"(?P<batch>\d+)-j(?P<join>\d+)-(?P<group>\d+)\.parquet")


@dataclass(frozen=True, slots=True, order=True)
class RejectFile:
    """The rejected rows of one side of one group in one batch."""

    batch: int
    join: int
    group: int
    side: str
    path: Path

    @property
    def name(self) -> str:
        """Name below the folder of rejects."""
        return f"{self.side}/{self.path.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedRow(Document):
    """One rejected row; `row` has the columns that the statement reads, by their names."""

    DOCUMENT: ClassVar = ("side", "reason", "event_time", "watermark", "batch", "matched", "text")

    side: str
    reason: str
    event_time: Annotated[int, _iso] | None
    watermark: Annotated[int, _iso] | None
    batch: int
    matched: bool
    raw: str | None
    row: Mapping[str, Any]

    @property
    def text(self) -> Annotated[str, Key("row")]:
        """The row as JSON text, or what could not be read."""
        if self.raw is not None:
            return self.raw
        return json.dumps(dict(self.row), ensure_ascii=False, default=str)


def list_reject_files(checkpoint: Checkpoint) -> tuple[RejectFile, ...]:
    """Return the files of rejected rows, oldest batch first; batches that have not happened show nothing."""
    found = []
    last = last_batch(checkpoint)
    for path in checkpoint.rejects.glob("*/*.parquet"):
        named = _NAME.fullmatch(path.name)
        if named is not None:
            batch, join, group = (int(named[part]) for part in ("batch", "join", "group"))
            if last is not None and batch > last:
                continue
            found.append(RejectFile(batch, join, group, path.parent.name, path))
    return tuple(sorted(found))


def read_rejects(file: RejectFile) -> Any:
    """Return the rows of a file as an Arrow table; raise `StreamError` W2202 when it does not read."""
    try:
        return pq.read_table(file.path, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as cause:
        raise damaged_file(file.path, str(cause)) from cause


def read_last_rejects(checkpoint: Checkpoint, most: int) -> tuple[RejectedRow, ...]:
    """Return the newest rejected rows, the last batch first."""
    names = read_job_record(checkpoint).plan.get("children", EMPTY)
    sides = read_job_record(checkpoint).plan.get("sides", EMPTY)
    found: list[RejectedRow] = []
    for file in reversed(list_reject_files(checkpoint)):
        if len(found) >= most:
            break
        key = side_name(max(file.join, 1), file.side)
        rows = read_rejects(file).slice(0, most - len(found)).to_pylist()
        found.extend(_row(said, sides.get(key, key), names.get(key, EMPTY)) for said in rows)
    return tuple(found)


def _row(said: Mapping[str, Any], side: str, names: Mapping[str, str]) -> RejectedRow:
    inner = said.get("row") or {}
    shown = {names.get(child, child): value for child, value in inner.items() if not names or child in names}
    return RejectedRow(
        side=side,
        reason=said["reason"],
        event_time=said["event_time"],
        watermark=said["watermark"],
        batch=said["batch"],
        matched=said["matched"],
        raw=said["raw"],
        row=shown,
    )


def _iso(micros: int) -> str:
    return format_micros(micros) or str(micros)
