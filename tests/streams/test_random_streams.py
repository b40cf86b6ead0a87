"""Random streams: the engine in this process equals the reference row for row and batch for batch.

A run is identified by its seed; a failure prints the statement and all that came in.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from random_streams import START, Run, Side, as_set, random_run
from weft.streams.kernel.spec import Counters
from weft.testing.stream_arrow import stable_hash
from weft.testing.stream_engine import StreamResult, run_statement
from weft.testing.stream_reference import run_reference
from weft.testing.values import microseconds

RUNS, LONG, TOGETHER = 200, 2000, 10
WALL_CLOCK = microseconds(START) + 20_000_000
MEMORY = Path("/dev/shm")  # noqa: S108  # thousands of small synced files; kill -9 is tested elsewhere


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "first_seed" in metafunc.fixturenames:
        count = LONG if metafunc.config.getoption("--streams-long") else RUNS
        metafunc.parametrize("first_seed", range(0, count, TOGETHER))


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else tmp_path))
    yield folder
    shutil.rmtree(folder)


def engine(run: Run, root: Path, *, seed: int = 0) -> StreamResult:
    place = root / f"{run.seed}-{seed}-{len(list(root.iterdir()))}"
    return run_statement(
        run.plan,
        run.batches,
        root=place,
        groups=(run.groups, run.groups % 3 + 1),  # a start on more or fewer cores after each crash
        final=run.final,
        hash_of=run.hash_of,
        wall_clock=WALL_CLOCK,
        idle=run.idle,
        seed=seed,
    )


def rejects(found: StreamResult) -> list[tuple[Any, ...]]:
    """Return what the table of rejected rows holds, as the reference tells it."""
    names = ("side", "reason", "event_time", "watermark", "batch")
    tables = [pq.read_table(path, columns=list(names)) for path in found.checkpoint.rejects.rglob("*.parquet")]
    return _in_order([tuple(row[n] for n in names) for table in tables for row in table.to_pylist()])


def _in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


def test_random_runs_equal_the_reference(first_seed: int, root: Path) -> None:
    for seed in range(first_seed, first_seed + TOGETHER):
        run = random_run(seed)
        wanted = run_reference(run.plan, run.fed, final=run.final, wall_clock=WALL_CLOCK, idle=run.idle)
        found = engine(run, root)
        assert as_set(found.rows) == as_set(wanted.rows), str(run)
        assert {s: dict(c) for s, c in found.ledger.items()} == dict(wanted.ledger), str(run)
        assert found.clocks == wanted.clocks, str(run)
        assert rejects(found) == _in_order(
            [(r.side, r.reason, r.time, r.watermark, r.batch) for r in wanted.rejects]
        ), str(run)
        for counts in found.ledger.values():
            assert Counters.from_dict(dict(counts)).balances, str(run)


def test_the_random_runs_reach_every_kind_of_row() -> None:
    """So many runs would say little if all their rows were unmatched."""
    runs = [random_run(seed) for seed in range(RUNS)]
    ledgers = [run_reference(r.plan, r.fed, final=r.final, wall_clock=WALL_CLOCK, idle=r.idle).ledger for r in runs]
    totals = {
        name: sum(counts[name] for ledger in ledgers for counts in ledger.values())
        for name in ("in", "matched", "waiting", "unmatched", "late", "rejected")
    }
    assert totals["matched"] > 2000
    assert min(totals.values()) > 100
    assert {(r.how, r.form.split("(")[0].strip(), bool(r.more)) for r in runs} >= {
        (how, form, False)
        for how in ("INNER", "LEFT", "RIGHT", "FULL")
        for form in ("", "WINDOW TUMBLING", "WINDOW SLIDING", "WINDOW SESSION")
    }


def calm(seed: int) -> Run:
    """Return a random run of two streams in which nothing is late and nothing comes twice."""
    run = random_run(seed)
    sides = tuple(replace(s, delay=10_000, late="side_output", dedup="") for s in run.sides)
    return replace(run, sides=sides, idle={}, final=True)


@pytest.mark.parametrize("seed", range(20))
def test_the_rows_do_not_depend_on_order_batches_groups_or_hashes(seed: int, root: Path) -> None:
    run = calm(seed)
    together = {name: [r for b in run.fed for r in b.get(name, [])] for name in "abc"}
    once = replace(run, batches=(together,), groups=1, collide=0)
    backwards = tuple({n: list(reversed(rows)) for n, rows in b.items()} for b in reversed(run.fed))
    reversed_ = replace(run, batches=backwards, groups=3, collide=2)
    wanted = as_set(engine(run, root).rows, by_batch=False)
    assert as_set(engine(once, root).rows, by_batch=False) == wanted, str(run)
    assert as_set(engine(reversed_, root, seed=7).rows, by_batch=False) == wanted, str(run)


@pytest.mark.parametrize("seed", range(12))
def test_a_longer_delay_never_makes_more_rows_late(seed: int, root: Path) -> None:
    run = random_run(seed)
    late = []
    for delay in (0, 2, 10, 1000):
        sides = tuple(replace(s, delay=delay) for s in run.sides)
        late.append(engine(replace(run, sides=sides), root).late)
    assert late == sorted(late, reverse=True), str(run)
    assert late[-1] == 0


@pytest.mark.parametrize("seed", range(30))
def test_a_left_join_is_the_right_join_of_the_other_order(seed: int, root: Path) -> None:
    run = replace(random_run(seed), where="", residual="")
    run = _two_sided(run)
    a, b = run.sides
    mirrored = replace(
        run,
        sides=(replace(b, name="a"), replace(a, name="b")),
        how={"LEFT": "RIGHT", "RIGHT": "LEFT"}.get(run.how, run.how),
        form=_mirrored(run.form),
        batches=tuple(_swapped(batch) if isinstance(batch, dict) else batch for batch in run.batches),
        idle={n: tuple({"a": "b", "b": "a"}[x] for x in names) for n, names in run.idle.items()},
    )
    found = [
        (batch, {_other(name): value for name, value in row.items()}) for batch, row in engine(mirrored, root).rows
    ]
    assert as_set(found) == as_set(engine(run, root).rows), str(run)


def _two_sided(run: Run) -> Run:
    """Return the run without a third stream, its bound as WITHIN, its pairs given as they are found."""
    form = run.form or "WITHIN ('5s', '8s')"
    form = "WITHIN ('5s', '8s')" if run.more and "WITHIN" not in form and not run.windows else form
    return replace(run, sides=run.sides[:2], more="", bound="", form=form, emit="EMIT CHANGES", windows=False)


def _mirrored(form: str) -> str:
    if not form.startswith("WITHIN"):
        return form
    before, after = form.removeprefix("WITHIN (").removesuffix(")").split(", ")
    return f"WITHIN ({after}, {before})"


def _swapped(batch: dict[str, list[object]]) -> dict[str, list[object]]:
    return {{"a": "b", "b": "a"}.get(name, name): rows for name, rows in batch.items()}


def _other(name: str) -> str:
    return {"a": "b", "b": "a"}[name[0]] + name[1:]


def test_equal_inputs_have_equal_hashes_in_every_process() -> None:
    assert stable_hash(("hot", 1)) == 1237647418114535341


def test_a_run_prints_what_is_needed_to_see_it_again() -> None:
    run = random_run(3)
    assert "seed 3" in str(run)
    assert "CREATE STREAM joined" in str(run)
    assert Side(name="a").sql in replace(run, sides=(Side(name="a"), *run.sides[1:])).sql
