"""What a resumed run or a rerun may use of an earlier run, decided without Spark."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from engine_data import CONVERT, WRITE, project_text, sample_workspace
from staged_runs import SECOND, opened, staged_run
from weft.pipelines.run import resume
from weft.pipelines.run.resume import _same_inputs, kept_of


@pytest.mark.parametrize(("mode", "kept"), [("replace_period", [20, 30]), ("merge", [30])])
def test_a_merge_is_repeated_with_the_rows_that_its_target_has_now(tmp_path: Path, mode: str, kept: list[int]) -> None:
    operations = [CONVERT, WRITE + f"    mode: {mode}\n", SECOND]
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": project_text(operations)})
    with opened(root) as store:
        run = staged_run(root, store)
        found = kept_of(store.run(run.run_id), run.plan, store, root)
    assert [output.seq for output in found.outputs] == kept


OLD, NEW = {"files": ["a"]}, {"files": ["b"]}


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        (OLD, OLD, True),
        (OLD, NEW, False),
        (OLD | {"rows": "1"}, NEW | {"rows": "1"}, True),
        (OLD | {"rows": "1"}, NEW | {"rows": "2"}, False),
        (OLD | {"rows": None}, NEW | {"rows": None}, False),
        (OLD | {"rows": "1"}, NEW, False),
    ],
)
def test_inputs_are_the_same_when_their_files_are_or_the_rows_that_were_read(
    before: dict[str, Any], now: dict[str, Any], *, same: bool
) -> None:
    assert _same_inputs({"gl": before}, {"gl": now}) is same
    assert not _same_inputs({"gl": before}, {})


def test_a_step_is_used_only_when_it_is_before_every_output_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": project_text([CONVERT, WRITE, SECOND])})
    monkeypatch.setattr(resume, "whole_steps", lambda *_: iter((30, 20, 10)))
    with opened(root) as store:
        run = staged_run(root, store)
        assert kept_of(store.run(run.run_id), run.plan, store, root).step == 30
        shutil.rmtree(run.moves[0].source)
        found = kept_of(store.run(run.run_id), run.plan, store, root)
    # With the step of the output itself the run would continue after it, and never write it.
    assert ([output.seq for output in found.outputs], found.step) == ([30], 10)
