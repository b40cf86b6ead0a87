"""Kill -9 of ``weft run`` with its JVM, at named steps and at random moments, with Parquet and PostgreSQL outputs.

Each run writes a new generation of ten rows, once into a target that is replaced and once into one that is added to.
After a kill the next command completes the run, or it is resumed, or, when nothing was begun, started again; then the
rows are compared one by one.  Readers look at the targets all the time.

``--kills N`` says how often, ``--kill-seed S`` chooses the moments.
"""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pyarrow.dataset as ds
import pytest

from engine_data import project_text, sample_workspace
from engine_runs import opened, ran
from kills import running
from postgres import Server, running_server
from weft.io.spark.session import Session, installed_jars
from weft.pipelines.run.publish import recover
from weft.pipelines.run.resume import resume

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weft.pipelines.store.writer import Store

ROWS = 10
SETTINGS = """\
weft: 1
default_resolver: files
spark: {master: "local[1]", conf: {spark.driver.memory: 512m, spark.sql.shuffle.partitions: "1", spark.ui.enabled: "false"}}
"""
COLUMNS = "columns: [journal_id, line_number, amount_local, _period]"
OUTPUTS = """\
- {{seq: 20, name: Replaced, type: output, arguments: {{destination: {0}, {1}}}}}
- {{seq: 30, name: Added, type: output, arguments: {{destination: {2}, mode: append, {1}}}}}
"""
POINTS = {
    "parquet": (
        "snapshot_written running operation operation:2 staged staged:2 before_publish marked marked:2 exchanged "
        "exchanged:2 renamed_in renamed_in:2 before_commit after_commit before_cleanup"
    ).split(),
    "postgresql": (
        "snapshot_written running operation operation:2 staged staged:2 before_publish tables_prepared "
        "tables_committed before_commit after_commit before_cleanup"
    ).split(),
}
"""Where a process ends itself, in the order in which a run comes there."""

ENDED = "ended before its kill"

Generations = Counter[Decimal]
"""How many rows of each generation a target holds."""


@dataclass
class Sink:
    """A workspace whose runs are killed, and how its targets are read."""

    name: str
    root: Path
    replaced: Callable[[], Generations]
    added: Callable[[], Generations]
    tally: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    seen: int = 0
    generation: int = 0
    seconds: float = 6.0
    """From the start of a run to its end: random moments are chosen from this."""
    runs: threading.Event = field(default_factory=threading.Event)
    """Set from the first line of a run until its rows are compared: readers look often then, seldom while a JVM starts."""

    def write_input(self) -> None:
        """Give the input the next generation: every amount is its number."""
        self.generation += 1
        head = "journal_id,line_number,posting_date,account_code,cost_center_code,currency,amount_local,amount_reporting,description,source_system,_period"
        lines = [f"JE-{n:03},1,2026-01-31,4000,CC1,USD,{self.generation}.00,,,test,2026-01" for n in range(ROWS)]
        text = "\n".join([head, *lines]) + "\n"
        (self.root / "data" / "transactions.csv").write_text(text, encoding="utf-8")

    def check(self) -> None:
        """Compare every row: the last generation alone where rows are replaced, each once where they are added."""
        assert self.replaced() == {Decimal(self.generation): ROWS}
        assert self.added() == {Decimal(g): ROWS for g in range(1, self.generation + 1)}

    def look(self, over: threading.Event) -> None:
        """Read again and again: whole generations only, at every moment."""
        while not over.wait(0.005 if self.runs.is_set() else 0.1):
            try:
                replaced, added = self.replaced(), self.added()
            except FileNotFoundError:  # listed before an exchange and opened after it
                continue
            self.seen += 1
            if len(replaced) != 1 or set(replaced.values()) != {ROWS}:
                self.broken.append(f"replaced in generation {self.generation}: {replaced}")
            if set(added.values()) != {ROWS}:
                self.broken.append(f"added in generation {self.generation}: {added}")


def parquet(folder: Path) -> Sink:
    text = OUTPUTS.format("{path: out/replaced}", COLUMNS, "{path: out/added}")
    root = sample_workspace(folder, {"weft.yml": SETTINGS, "projects/fx_reporting.yml": project_text([text])})

    def read(target: str) -> Callable[[], Generations]:
        place = root / "out" / target / "period=2026-01"

        def found() -> Generations:
            files = [str(file) for file in place.iterdir()]
            table = ds.dataset(files, format="parquet").to_table(columns=["amount_local"])
            return Counter(value for value in table.column(0).to_pylist())

        return found

    return Sink("parquet", root, read("replaced"), read("added"))


def postgresql(folder: Path, server: Server, database: psycopg.Connection) -> Sink:
    text = OUTPUTS.format("{datasource_id: pg, table: replaced}", COLUMNS, "{datasource_id: pg, table: added}")
    url = "jdbc:" + server.url().replace("weft@", "") + "?user=weft"
    pg = f'datasource: {{id: pg, name: pg, type: jdbc, options: {{url: "{url}"}}}}\n'
    root = sample_workspace(
        folder,
        {"weft.yml": SETTINGS, "projects/fx_reporting.yml": project_text([text]), "datasources/pg.yml": pg},
    )

    def read(table: str) -> Callable[[], Generations]:
        def found() -> Generations:
            rows = database.execute(f"SELECT amount_local, count(*) FROM {table} GROUP BY 1").fetchall()  # noqa: S608
            return Counter(dict(rows))

        return found

    return Sink("postgresql", root, read("replaced"), read("added"))


@contextmanager
def watched(sinks: list[Sink]) -> Iterator[None]:
    over = threading.Event()
    threads = [threading.Thread(target=sink.look, args=(over,), daemon=True) for sink in sinks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(30)


def run_and_kill(sink: Sink, log: Path, point: str, wait: Callable[[float], float]) -> str:
    """Start ``weft run`` and end it with SIGKILL; return where it was.

    `wait` chooses a moment between the start of the run itself and its end.
    """
    words = ["-m", "weft", "-C", str(sink.root), "run", "fx_reporting", "-p", "2026-01"]
    before = len(log.read_bytes()) if log.exists() else 0
    with running(words, log=log, crash_at=point) as process:
        deadline = time.monotonic() + 300
        while process.poll() is None and b"run " not in log.read_bytes()[before:]:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        sink.runs.set()
        if point:
            assert process.wait(300) == -signal.SIGKILL, log.read_text()
            return "named step"
        time.sleep(wait(sink.seconds))
        ended = process.poll() is not None
        process.end_group()
        if ended:  # the run ended before the kill, so it is not counted
            sink.seconds *= 0.7
        return ENDED if ended else "random moment"


def kill_once(sink: Sink, spark: SparkSession, log: Path, point: str, chance: random.Random) -> str:
    """Kill a run of the next generation, settle it and compare every row; return where it was."""
    sink.write_input()
    with opened(sink.root) as store:
        before = len(store.runs("fx_reporting", limit=1000))
    where = run_and_kill(sink, log, point, lambda most: chance.uniform(0, most))
    with opened(sink.root) as store:
        outcome = settle(sink, store, spark, before)
    if where != ENDED:
        sink.tally[f"{where}: {outcome}"] += 1
    # Shown with -s, so that a long search that is interrupted tells how far it came.
    sys.stdout.write(f"{sink.name} generation {sink.generation}: {point or where}, {outcome}\n")
    sys.stdout.flush()
    try:
        sink.check()
    except AssertionError as wrong:
        message = f"{sink.name}, generation {sink.generation}, {point or where}, {outcome}"
        raise AssertionError(message) from wrong
    sink.runs.clear()
    return where


def settle(sink: Sink, store: Store, spark: SparkSession, before: int) -> str:
    """Do what a user does after a crash, and return what it was."""
    recovered = [r.outcome for r in recover(store, sink.root)]
    runs = store.runs("fx_reporting", limit=1000)
    if len(runs) == before:
        assert ran(sink.root, store, spark).ok
        return "started again"
    newest = runs[0]
    if newest.status == "failed":
        report = resume(newest.id, root=sink.root, store=store, session=Session(spark))
        assert report.ok, report.diagnostics
        return "resumed"
    assert newest.status == "completed", newest
    return "completed by the next command" if recovered else "complete"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    assert installed_jars(), "this test needs the JDBC driver of PostgreSQL: `scripts/jars` fetches it"
    with running_server() as found:
        yield found


@pytest.fixture(scope="module")
def database(server: Server) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server.url(), autocommit=True) as found:
        yield found


def test_runs_that_are_killed_lose_and_double_no_row(
    tmp_path: Path,
    spark: SparkSession,
    server: Server,
    database: psycopg.Connection,
    kills: int,
    kill_seed: int,
) -> None:
    chance = random.Random(kill_seed)
    sinks = [parquet(tmp_path / "files"), postgresql(tmp_path / "pg", server, database)]
    for sink in sinks:
        sink.write_input()
        with opened(sink.root) as store:
            assert ran(sink.root, store, spark).ok
        sink.check()
    named = {sink.name: chance.sample(POINTS[sink.name], len(POINTS[sink.name])) for sink in sinks}
    with watched(sinks):
        for number in range(kills):
            sink, turn = sinks[number % 2], number // 2
            # Steps and random moments by turns; every step comes before one comes twice.
            points = named[sink.name]
            point = points[turn // 2 % len(points)] if turn % 2 == 0 else ""
            where = ENDED
            while where == ENDED:
                where = kill_once(sink, spark, tmp_path / f"{sink.name}.log", point, chance)
    for sink in sinks:
        reported = ", ".join(f"{n} {what}" for what, n in sorted(sink.tally.items()))
        sys.stdout.write(f"{sink.name}: {sum(sink.tally.values())} kills, {sink.seen} reads; {reported}\n")
    for sink in sinks:
        assert sink.broken == []
        assert sink.seen > 0
    left = database.execute("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'weft_stage%'").fetchone()
    assert left == (0,)
