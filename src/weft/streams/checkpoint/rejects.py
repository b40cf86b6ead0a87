"""Rejected rows of a checkpoint: side, reason, time, and the row itself.

::

    rejects/<side>/<batch>-j<join>-<task>.<attempt>.parquet
        side reason event_time watermark batch group matched raw row{..}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from weft.core.documents import Document, Key, format_micros
from weft.core.frozen import EMPTY
from weft.io.stores.store_path import Place
from weft.streams.checkpoint.folder import Checkpoint, damaged_file, read_job_record
from weft.streams.checkpoint.ledger import side_name
from weft.streams.checkpoint.manifest import last_batch, read_manifest
from weft.streams.kernel.spec import checksum

REASONS = ("LATE", "EVICTED", "DUPLICATE", "NO_EVENT_TIME", "MALFORMED", "ABANDONED")
_NAME = re.compile(r"(?P<batch>\d+)-j(?P<join>\d+)-(?P<group>\d+)(?P<attempt>\.[0-9a-f]+)?\.parquet")


@dataclass(frozen=True, slots=True, order=True)
class RejectFile:
    """The rejected rows of one side of one task in one batch."""

    batch: int
    join: int
    group: int
    side: str
    path: Place
    sum: str = ""

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
    if last is None:  # rows of the checkpoint whose offsets this one took over
        last = read_job_record(checkpoint).first_batch - 1
    commits = _Commits(checkpoint)
    for path in checkpoint.rejects.glob("*/*.parquet"):
        named = _NAME.fullmatch(path.name)
        if named is None or int(named["batch"]) > last:
            continue
        batch, join, group = (int(named[part]) for part in ("batch", "join", "group"))
        file = RejectFile(batch, join, group, path.parent.name, path)
        listed = None if named["attempt"] is None else commits.read_listed(batch)
        # Several attempts of a task may have written the rows of a batch; its commit lists one of them.
        if listed is None or file.name in listed:
            files.append(replace(file, sum=(listed or {}).get(file.name, "")))
    return tuple(sorted(files))


class _Commits:
    """The rejects that commits list, each commit read once."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.known: dict[int, Mapping[str, str] | None] = {}

    def read_listed(self, batch: int) -> Mapping[str, str] | None:
        """Return the rejects of a batch; None for rows that were taken over with the offsets of another checkpoint."""
        if batch not in self.known:
            is_there = self.checkpoint.commit_file(batch).exists()
            self.known[batch] = read_manifest(self.checkpoint, batch).rejects if is_there else None
        return self.known[batch]


def read_rejects(file: RejectFile) -> Any:
    """Return the rows of a file as an Arrow table; raise `StreamError` W2202 if it is damaged."""
    try:
        content = file.path.read_bytes()
        if file.sum and checksum(content) != file.sum:
            raise damaged_file(file.path, "its content does not match its checksum")
        return pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
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
