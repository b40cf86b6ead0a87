"""Jobs on Spark that are killed again and again until their input is over: what each kill hits, and what is left.

::

    files of orders and shipments, a batch each     one life: `weft stream run JOB --final`
      life 1  killed in batch 2
      life 2  killed while Spark starts
      ...
      last life  runs to the end                    rows and ledger must be those that a join by hand gives

A kill hits Python with its JVM, as a power cut does, Python alone, or the JVM alone; it comes at a point of
`weft.core.crash`, at a chance moment of a batch, or at a chance moment of the start.
"""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import json
import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq

from kills import Leader, running
from weft.core.crash import STREAM_POINTS
from weft.streams.checkpoint.commit import is_sealed
from weft.streams.checkpoint.folder import Checkpoint, find_checkpoint
from weft.streams.checkpoint.manifest import last_manifest, list_batches, sink_files

Victim = Literal["group", "python", "jvm"]
Row = tuple[str, ...]
JOB, SINK = "job.sql", "status"
FILES = 12
"""Batches of a job; a life that is killed early does none of them."""

KILLS_OF_A_JOB = 8
WAIT = 300.0
_LOOK = 0.005
_START = dt.datetime(2026, 1, 15, 10, tzinfo=dt.UTC)
_SQL = """
CREATE STREAM orders (id STRING, total INT, t TIMESTAMP) WITH ('path' = 'orders', 'format' = 'json',
  'event.time.field' = 't', 'watermark.max_out_of_orderness' = '5s', 'max.files.per.trigger' = 1);
CREATE STREAM shipments (id STRING, t TIMESTAMP) WITH ('path' = 'shipments', 'format' = 'json',
  'event.time.field' = 't', 'watermark.max_out_of_orderness' = '5s', 'max.files.per.trigger' = 1);
CREATE STREAM status WITH ({sink}) AS
  SELECT o.id, o.total, s.t AS shipped FROM orders o LEFT JOIN shipments s
    ON o.id = s.id AND s.t BETWEEN o.t AND o.t + INTERVAL '30' SECOND;
SET 'groups' = '2';
SET 'trigger' = '100ms'
"""
_SETTINGS = """
spark:
  master: local[2]
  conf:
    spark.driver.memory: 512m
    spark.sql.shuffle.partitions: '2'
    spark.sql.streaming.fileSource.log.compactInterval: '3'  # otherwise every tenth entry gathers those before it
"""
_POINTS: tuple[str, ...] = tuple(point for point in STREAM_POINTS if point != "stream_staged")
_ONCE = ("stream_flush", "stream_sealed")


@dataclass(frozen=True, kw_only=True)
class Input:
    """The files of a job, and what a join by hand makes of them."""

    rows: Counter[Row]
    ledger: dict[str, dict[str, int]]


def write_input(root: Path, sink: str, chance: random.Random) -> Input:
    """Write a job and its files; return what must come out.

    Batch after batch the two streams move on by twenty seconds.  An order may have no shipment, one in its own
    batch, one in the next, or two; from the third batch on some rows are a day late, and some are not JSON.
    """
    rows: Counter[Row] = Counter()
    sides = {name: Counter({"in": 0}) for name in ("left", "right")}
    files: dict[str, list[list[str]]] = {name: [[] for _ in range(FILES + 1)] for name in ("orders", "shipments")}
    for batch in range(FILES):
        for number in range(chance.randint(2, 6)):
            name, at = f"{batch}-{number}", 20 * batch + chance.randint(0, 9)
            total = chance.randint(1, 99)
            files["orders"][batch].append(_line(id=name, total=total, t=at))
            after = [chance.randint(0, 8) for _ in range(chance.choice((0, 0, 1, 1, 2)))]
            later = chance.random() < 0.3 and batch + 1 < FILES
            for seconds in after:
                files["shipments"][batch + later].append(_line(id=name, t=at + seconds + 20 * later))
                rows[name, str(total), _shown(at + seconds + 20 * later)] += 1
            if not after:
                rows[name, str(total), ""] += 1
            sides["left"].update({"in": 1, "matched" if after else "unmatched": 1})
            sides["right"].update({"in": len(after), "matched": len(after)})
        lonely = chance.randint(1, 2)
        files["shipments"][batch] += [_line(id="nobody", t=20 * batch + 9)] * lonely
        sides["right"].update({"in": lonely, "unmatched": lonely})
        for side, stream in (("left", "orders"), ("right", "shipments")):
            if batch >= 2 and chance.random() < 0.4:
                files[stream][batch].append(_line(id="late", t=-86_400))
                sides[side].update({"in": 1, "late": 1})
            if chance.random() < 0.2:
                files[stream][batch].append("this is not JSON")
                sides[side].update({"in": 1, "rejected": 1})
    for stream, texts in files.items():
        (root / stream).mkdir(parents=True)
        for number, lines in enumerate(texts[:FILES]):
            file = root / stream / f"{number:03}.json"
            file.write_text("\n".join(lines) + "\n")
            os.utime(file, (1_700_000_000 + number,) * 2)  # Spark reads files in the order of their times
    (root / JOB).write_text(_SQL.format(sink=sink))
    (root / "weft.yml").write_text(_SETTINGS)
    return Input(rows=rows, ledger={side: dict(counts) for side, counts in sides.items()})


def _line(**values: Any) -> str:
    return json.dumps(values | {"t": _shown(values["t"])})


def _shown(second: int) -> str:
    return (_START + dt.timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S.000000Z")


@dataclass(frozen=True, kw_only=True)
class Kill:
    """When a life is killed, and what of it."""

    victim: Victim
    point: str = ""
    batch: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        """Return the kill as a report shows it."""
        if self.point:
            return f"{self.victim} at {self.point}"
        when = f"{self.seconds:.2f} s after " + (f"batch {self.batch} began" if self.batch else "the start")
        return f"{self.victim} {when}"


def chosen_kill(chance: random.Random) -> Kill:
    """Return a kill by chance: four of ten at a point, five in a batch, one while Spark starts."""
    kind = chance.random()
    if kind < 0.4:
        # Python ends itself there; its JVM is killed with it, or goes on beside the next life.
        point = chance.choice(_POINTS)
        point += ":1" if point in _ONCE else f":{chance.choices((1, 2, 3), weights=(5, 3, 2))[0]}"
        return Kill(victim=chance.choice(("group", "python")), point=point)
    victim: Victim = chance.choices(("group", "python", "jvm"), weights=(6, 2, 2))[0]
    if kind < 0.9:
        batch = chance.choices((1, 2, 3), weights=(5, 3, 2))[0]
        return Kill(victim=victim, batch=batch, seconds=chance.uniform(0, 0.8))
    return Kill(victim="group", seconds=chance.uniform(0.2, 6))


@dataclass(kw_only=True)
class Report:
    """What became of the kills of one sink."""

    kills: list[Kill] = field(default_factory=list)
    jobs: int = 0
    lost: int = 0
    doubled: int = 0
    repeated: int = 0
    """Messages of Kafka that came again with the id they had."""

    def __str__(self) -> str:
        """Return the counts in a line."""
        hit = Counter(kill.victim for kill in self.kills)
        at_points = sum(bool(kill.point) for kill in self.kills)
        return (
            f"{len(self.kills)} kills ({hit['group']} of Python with its JVM, {hit['python']} of Python, {hit['jvm']} "
            f"of the JVM; {at_points} at named points) in {self.jobs} jobs: {self.lost} rows lost, "
            f"{self.doubled} doubled, {self.repeated} repeated with their ids"
        )


class Job:
    """One job that is killed until its input is over."""

    def __init__(self, root: Path, sink: str, chance: random.Random) -> None:
        self.root, self.chance = root, chance
        self.expected = write_input(root, sink, chance)
        self.log = root / "log.txt"
        self.words = ("-m", "weft", "-C", str(root), "stream", "run", JOB, "--final", "--json")

    @property
    def checkpoint(self) -> Checkpoint | None:
        return find_checkpoint(self.root / ".weft" / "streams" / "job" / SINK)

    @property
    def is_sealed(self) -> bool:
        found = self.checkpoint
        return found is not None and is_sealed(found)

    def begun(self) -> int:
        """Return how many batches have begun, ended or not."""
        with contextlib.suppress(Exception):  # looked at while it is written
            found = self.checkpoint
            return 0 if found is None else len(list_batches(found.heartbeats))
        return 0

    def killed(self, stack: ExitStack, kill: Kill) -> bool:
        """Run a life and kill it; False when it came to its end before."""
        process = stack.enter_context(running(self.words, log=self.log, crash_at=kill.point))
        if kill.point:
            code = process.wait(WAIT)
        else:
            if not self._reached(process, kill):
                return False
            time.sleep(kill.seconds)
            code = self._hit(process, kill.victim)
        if code == 0:
            return False
        if kill.victim == "group":
            process.end_group()
        # A lost JVM is reported with a code; a Python that is killed reports nothing.
        wanted = {-signal.SIGKILL} if kill.victim != "jvm" else {1, -signal.SIGKILL}
        assert code in wanted, f"{kill}: exit code {code}\n{self.tail()}"
        assert code != 1 or '"code": "W2214"' in self.log.read_text(errors="replace"), self.tail()
        return True

    def _reached(self, process: Leader, kill: Kill) -> bool:
        wanted = self.begun() + kill.batch
        until = time.monotonic() + WAIT
        while (code := process.poll()) is None:
            assert time.monotonic() < until, f"{kill}: the batch did not begin\n{self.tail()}"
            if not kill.batch or self.begun() >= wanted:
                return True
            time.sleep(_LOOK)
        assert code == 0, f"exit code {code}\n{self.tail()}"
        return False

    def _hit(self, process: Leader, victim: Victim) -> int:
        if process.poll() is not None:
            return process.wait()
        if victim == "group":
            return process.end_group()
        number = process.pid if victim == "python" else java_of(process.pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(number or process.pid, signal.SIGKILL)
        return process.wait(WAIT)

    def finish(self) -> None:
        """Run to the end without a kill."""
        if not self.is_sealed:
            with running(self.words, log=self.log) as process:
                assert process.wait(WAIT) == 0, self.tail()
        assert self.is_sealed

    def tail(self) -> str:
        """Return the end of what the lives printed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])

    def check(self, found: Counter[Row], report: Report) -> None:
        """Compare what is left with the join by hand."""
        lost, doubled = self.expected.rows - found, found - self.expected.rows
        report.lost += lost.total()
        report.doubled += doubled.total()
        checkpoint = self.checkpoint
        assert checkpoint is not None
        manifest = last_manifest(checkpoint)
        assert manifest is not None
        ledger = {s: {k: v for k, v in c.items() if v} for s, c in manifest.ledger.items()}
        assert (lost, doubled) == (Counter(), Counter()), f"after {[str(k) for k in report.kills]}"
        assert ledger == self.expected.ledger, f"after {[str(k) for k in report.kills]}"
        assert manifest.total_rows == found.total()
        assert "bug in Weft" not in self.log.read_text(errors="replace"), self.tail()


def java_of(python: int) -> int | None:
    """Return the JVM that a Python has started, None when there is none yet."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            found = re.match(r"(\d+) \((.*)\) \S (\d+)", stat.read_text(errors="replace"), re.DOTALL)
            if found and int(found[3]) == python and found[2] == "java":
                return int(found[1])
    return None


def kill_jobs(
    folder: Path,
    sink: str,
    kills: int,
    chance: random.Random,
    rows_of: Callable[[Job, Report], Counter[Row]],
    *,
    first: Kill,
) -> Report:
    """Kill jobs with a sink so many times; each job is restarted to its end and compared.

    `first` is the first kill, the others are chosen by `chance`.
    """
    report = Report()
    while len(report.kills) < kills:
        report.jobs += 1
        job = Job(folder / str(report.jobs), sink.replace("{job}", str(report.jobs)), chance)
        orphans = ExitStack()
        with orphans:
            for _ in range(min(KILLS_OF_A_JOB, kills - len(report.kills))):
                kill = chosen_kill(chance) if report.kills else first
                beside = ExitStack()
                try:
                    hit = job.killed(beside, kill)
                finally:
                    # What the last life left behind has gone on beside this one; it ends now.
                    orphans.close()
                    orphans.push(beside)
                if not hit:
                    break
                report.kills.append(kill)
                print(f"{folder.name} job {report.jobs} kill {len(report.kills)}: {kill}", flush=True)  # noqa: T201
                if job.is_sealed:  # killed between its last step and its end
                    break
            job.finish()
        job.check(rows_of(job, report), report)
        print(f"{folder.name}: {report}", flush=True)  # noqa: T201
    return report


def rows_of_files(job: Job, _report: Report) -> Counter[Row]:
    """Return the rows of a folder, and see that it holds the files of the commits and nothing else."""
    checkpoint = job.checkpoint
    assert checkpoint is not None
    out = job.root / "out"
    files = sorted(p for p in out.rglob("*") if p.is_file())
    assert set(files) == set(sink_files(checkpoint))
    return Counter(row for file in files for row in _read(file))


def _read(file: Path) -> Iterator[Row]:
    if file.suffix == ".parquet":
        yield from (_row(r) for r in pq.read_table(file).to_pylist())
    elif file.suffix == ".csv":
        with file.open(newline="") as lines:
            yield from (_row(r) for r in csv.DictReader(lines))
    else:
        yield from rows_of_json(file.read_text().splitlines())


def rows_of_json(lines: Iterable[str]) -> Iterator[Row]:
    """Return the rows of JSON texts."""
    return (_row(json.loads(line)) for line in lines)


def _row(values: dict[str, Any]) -> Row:
    at = values["shipped"]
    text = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if isinstance(at, dt.datetime) else (at or "")
    return str(values["id"]), str(values["total"]), text
