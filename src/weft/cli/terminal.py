"""What people see: colours where a terminal shows them, tables, sizes of time, bars of progress."""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from weft.errors import Diagnostic
from weft.redaction import redact

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from weft.pipelines.plan.project import ProjectPlan
    from weft.pipelines.plan.stages import Stage
    from weft.pipelines.spark.counts import OperationCounts
    from weft.pipelines.store.records import RunRecord

_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "note": "\x1b[1;36m"}
_PLAIN = "\x1b[0m"


def has_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose user wants colours."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def shown(found: Diagnostic, *, colour: bool = False) -> str:
    """Return a finding as people read it."""
    text = str(found)
    mark = f"{found.severity}[{found.code}]"
    return text.replace(mark, f"{_COLOURS[found.severity]}{mark}{_PLAIN}", 1) if colour else text


def say(text: str) -> None:
    """Tell the user something that is not the result, without secrets: on stderr."""
    sys.stderr.write(redact(text) + "\n")
    sys.stderr.flush()


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows below their heads, each column as wide as it must be.

    >>> print(table(("RUN", "STATUS"), [("0199", "completed")]))
    RUN   STATUS
    0199  completed
    """
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    )


def took(seconds: float | None) -> str:
    """Return a length of time as minutes and seconds.

    >>> took(67.4), took(None)
    ('1:07', '-')
    """
    if seconds is None:
        return "-"
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02}"


def moment(at: dt.datetime | None) -> str:
    """Return a moment to the minute, in UTC."""
    return "-" if at is None else at.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M")


def many(count: int, word: str) -> str:
    """Return a count with its word.

    >>> many(1, "error"), many(0, "file")
    ('1 error', '0 files')
    """
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def counted(counts: OperationCounts, kind: str) -> str:
    """Return what an operation counted, in words."""
    if kind == "output":
        # rows_out counts the working set, which an output with a selector writes only a part of.
        return f"{counts.rows_changed:,} written"
    parts = [many(counts.rows_out, "row"), f"{counts.rows_changed:,} {_DONE.get(kind, 'changed')}"]
    for join in counts.joins:
        more = f" {join.multiple:,} multiple" if join.multiple else ""
        parts.append(f"{join.alias}: {join.matched:,} matched {join.unmatched:,} unmatched{more}")
    return "   ".join(parts)


_DONE = {"aggregate": "added", "append": "added", "delete": "deleted"}


class Watcher:
    """Tells people how far a run is: a bar for each operation on a terminal, else a line when it is done."""

    def __init__(self, *, bars: bool) -> None:
        self._bars: Bars | None = None
        self._wants_bars = bars
        self._tasks: dict[int, TaskID] = {}
        self._kinds: dict[int, tuple[str, str]] = {}
        self._done: set[int] = set()

    def opened(self, run: RunRecord, plan: ProjectPlan) -> None:
        """Say that a run exists, with the versions it took."""
        from weft.pipelines.store.records import short_id

        pinned = ", ".join(dict.fromkeys(str(read.dataset) for read in plan.reads))
        where = "  into the sandbox" if plan.draft else ""
        say(f"run {short_id(run.id)}  snapshot {run.snapshot_sha[:8]}  pinned {pinned}{where}")
        from weft.pipelines.plan.stages import operation_type

        self._kinds = {op.seq: (op.name, operation_type(op)) for op in plan.operations}

    def started(self, stages: tuple[Stage, ...]) -> None:
        """Show a bar for each operation."""
        del stages
        if not self._wants_bars:
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.table import Column

        # On a narrow terminal the counts go on in the next line; nothing else gives way.
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=8, table_column=Column(no_wrap=True)),
            TaskProgressColumn(table_column=Column(no_wrap=True)),
            TimeElapsedColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[counted]}", markup=False, table_column=Column(no_wrap=False)),
            console=Console(stderr=True),
        )
        wide = max((len(name) for name, _ in self._kinds.values()), default=0)
        for seq, (name, _) in self._kinds.items():
            label = f"{seq:>4} {name:<{wide}}"
            self._tasks[seq] = self._bars.add_task(label, total=1.0, start=False, counted="")
        self._bars.start()

    def operation(self, seq: int, fraction: float, counts: OperationCounts | None) -> None:
        """Say how much of an operation is done."""
        name, kind = self._kinds.get(seq, ("", ""))
        text = "" if counts is None else counted(counts, kind)
        if self._bars is not None and seq in self._tasks:
            self._bars.start_task(self._tasks[seq])
            self._bars.update(self._tasks[seq], completed=fraction, counted=text)
        elif counts is not None and fraction >= 1 and seq not in self._done:
            self._done.add(seq)
            wide = max(len(n) for n, _ in self._kinds.values())
            say(f"{seq:>4} {name:<{wide}}  {text}")

    def finished(self) -> None:
        """Take the bars away from the cursor."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
