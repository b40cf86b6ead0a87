"""Rejected rows of a checkpoint: side, reason, time, and the row itself.

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
from weft.streams.checkpoint.folder import Checkpoint, damaged_file, read_job_record
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
    """One rejected row; `row` maps the columns that the statement reads to their values."""

    DOCUMENT: ClassVar = ("side", "reason", "event_time", "watermark", "batch", "matched", "text")

    side: str
    reason: str
    event_time: Annotated[int, _format_time] | None
    watermark: Annotated[int, _format_time] | None
    batch: int
    matched: bool
    raw: str | None
    row: Mapping[str, Any]

    @property
    def text(self) -> Annotated[str, Key("row")]:
        """The row as JSON, or the text that could not be parsed."""
        if self.raw is not None:
            return self.raw
        return json.dumps(dict(self.row), ensure_ascii=False, default=str)


def list_reject_files(checkpoint: Checkpoint) -> tuple[RejectFile, ...]:
    """Return the files of rejected rows of committed batches, the oldest first."""
    files = []
    # A batch that is not committed may be repeated, and would be listed twice.
    last = last_batch(checkpoint)
    for path in checkpoint.rejects.glob("*/*.parquet"):
        named = _NAME.fullmatch(path.name)
        if named is not None:
            batch, join, group = (int(named[part]) for part in ("batch", "join", "group"))
            if last is not None and batch > last:
                continue
            files.append(RejectFile(batch, join, group, path.parent.name, path))
    return tuple(sorted(files))


def read_rejects(file: RejectFile) -> Any:
    """Return the rows of a file as an Arrow table; raise `StreamError` W2202 if it is damaged."""
    try:
        return pq.read_table(file.path, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as cause:
        raise damaged_file(file.path, str(cause)) from cause


def read_last_rejects(checkpoint: Checkpoint, most: int) -> tuple[RejectedRow, ...]:
    """Return the newest rejected rows, the last batch first."""
    plan = read_job_record(checkpoint).plan
    names, sides = plan.get("children", EMPTY), plan.get("sides", EMPTY)
    rejected: list[RejectedRow] = []
    for file in reversed(list_reject_files(checkpoint)):
        if len(rejected) >= most:
            break
        key = side_name(max(file.join, 1), file.side)  # join 0 is a statement without a join that has state
        rows = read_rejects(file).slice(0, most - len(rejected)).to_pylist()
        rejected.extend(_build_row(row, sides.get(key, key), names.get(key, EMPTY)) for row in rows)
    return tuple(rejected)


def _build_row(values: Mapping[str, Any], side: str, names: Mapping[str, str]) -> RejectedRow:
    inner = values.get("row") or {}
    columns = {names.get(child, child): value for child, value in inner.items() if not names or child in names}
    own = {name: values[name] for name in ("reason", "event_time", "watermark", "batch", "matched", "raw")}
    return RejectedRow(side=side, row=columns, **own)


def _format_time(micros: int) -> str:
    return format_micros(micros) or str(micros)
