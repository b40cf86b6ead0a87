"""Small defects put into the kernel: each must make some of the random runs differ from the reference.

A test that no defect can fail proves nothing; these are the defects that joins of streams really have.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from random_streams import START, Run, as_set, random_run
from weft.errors import StreamError
from weft.streams.kernel import gate, session, transition, working
from weft.streams.kernel.pairs import expiry_threshold, matching_range
from weft.streams.kernel.spec import FOREVER, MATCHED, NEVER, Clock
from weft.testing.stream_engine import run_statement
from weft.testing.stream_reference import ReferenceResult, run_reference
from weft.testing.values import microseconds

WALL_CLOCK = microseconds(START) + 20_000_000
SEEDS = range(60)

Patch = Callable[[pytest.MonkeyPatch], None]


@cache
def build_reference(seed: int) -> tuple[Run, ReferenceResult]:
    run = random_run(seed)
    return run, run_reference(run.plan, run.fed, final=run.final, wall_clock=WALL_CLOCK, idle=run.idle)


def agrees(seed: int) -> bool:
    """Whether the engine gives what the reference gives; a ledger that does not balance is no."""
    run, reference = build_reference(seed)
    memory = Path("/dev/shm")  # noqa: S108  # many small synced files
    root = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    try:
        result = run_statement(
            run.plan,
            run.fed,
            root=root,
            groups=run.groups,
            final=run.final,
            hash_of=run.hash_of,
            wall_clock=WALL_CLOCK,
            idle=run.idle,
        )
    except StreamError as stopped:
        assert stopped.code == "W2210"
        return False
    finally:
        shutil.rmtree(root)
    ledger = {side: dict(counts) for side, counts in result.ledger.items()}
    return as_set(result.rows) == as_set(reference.rows) and ledger == dict(reference.ledger)


def late_at_the_watermark(patch: pytest.MonkeyPatch) -> None:
    whole = gate._apply_late_policy
    patch.setattr(gate, "_apply_late_policy", lambda judged, mark: whole(judged, mark if mark == NEVER else mark + 1))


def over_a_microsecond_early(patch: pytest.MonkeyPatch) -> None:
    whole = expiry_threshold

    def early(*args: Any) -> int:
        below = whole(*args)
        return below if below in (NEVER, FOREVER) else below + 1

    patch.setattr(working, "expiry_threshold", early)


def null_keys_equal(patch: pytest.MonkeyPatch) -> None:
    whole = gate._to_numpy
    patch.setattr(gate, "_to_numpy", lambda column: (whole(column)[0], None))


def over_a_batch_early(patch: pytest.MonkeyPatch) -> None:
    whole = working.expire_rows

    def early(task: Any, side: working.ActiveSide, clock: Clock) -> Any:
        times = [t for t in (side.admitted.max_time,) if t is not None]
        least = max([clock.least, *times])
        return whole(task, side, Clock(left=least, right=least))

    patch.setattr(transition, "expire_rows", early)


def flags_not_set(patch: pytest.MonkeyPatch) -> None:
    whole = working.ActiveSide.set
    patch.setattr(
        working.ActiveSide, "set", lambda self, part, places, bits: whole(self, part, places, bits & ~MATCHED)
    )


def pairs_probed_twice(patch: pytest.MonkeyPatch) -> None:
    whole = transition._probes

    def twice(*args: Any) -> Iterator[Any]:
        for probe in whole(*args):
            yield probe
            if probe[2] == "left":
                yield probe

    patch.setattr(transition, "_probes", twice)


def hashes_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("weft.streams.kernel.pairs.compare_keys", lambda *_: None)


def upper_end_left_out(patch: pytest.MonkeyPatch) -> None:
    whole = matching_range

    def short(*args: Any) -> Any:
        low, high = whole(*args)
        return low, high - 1

    patch.setattr("weft.streams.kernel.pairs.matching_range", short)


def old_pairs_of_a_session_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(session, "_is_merged", lambda rows, _: np.ones(len(rows.start), dtype=np.bool_))
    whole = session._SessionRows.of

    def forgetful(*args: Any) -> Any:
        rows = whole(*args)
        rows.start = np.arange(len(rows.start)) + rows.start
        return rows

    patch.setattr(session._SessionRows, "of", forgetful)


def right_rows_of_final_joins_go_early(patch: pytest.MonkeyPatch) -> None:
    whole = expiry_threshold
    patch.setattr(working, "expiry_threshold", lambda task, *args: whole(replace(task, emit="changes"), *args))


DEFECTS: tuple[Patch, ...] = (
    late_at_the_watermark,
    over_a_microsecond_early,
    null_keys_equal,
    over_a_batch_early,
    flags_not_set,
    pairs_probed_twice,
    hashes_believed,
    upper_end_left_out,
    old_pairs_of_a_session_again,
    right_rows_of_final_joins_go_early,
)


def test_without_a_defect_the_runs_agree() -> None:
    assert [seed for seed in SEEDS[:20] if not agrees(seed)] == []


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda d: d.__name__)
def test_a_defect_is_seen(defect: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    defect(monkeypatch)
    assert any(not agrees(seed) for seed in SEEDS), f"{defect.__name__} passes {len(SEEDS)} random runs"
