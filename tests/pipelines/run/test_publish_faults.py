"""A process that dies while it publishes: whatever the moment, the next one leaves every row exactly once."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine_data import sample_workspace
from staged_runs import TARGETS, TWO_OUTPUTS, contents, killed, killed_recovering, opened, staged_run
from weft.errors import ActivationError, RunError
from weft.pipelines.model.read_workspace import load_workspace
from weft.pipelines.run import moving, publish
from weft.pipelines.run.execute import run_project
from weft.pipelines.run.moving import staged_runs as left_behind
from weft.pipelines.run.publish import recover
from weft.pipelines.store.records import short_id
from weft.pipelines.store.writer import Store

FIRST, SECOND = TARGETS
OLD, NEW = (["old 20"], ["old 30"]), (["new 20"], ["new 30"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a workspace whose targets hold what an earlier run published."""
    found = sample_workspace(tmp_path, {"projects/fx_reporting.yml": TWO_OUTPUTS})
    with opened(found) as store:
        staged_run(found, store, "old", number=1).publish()
    return found


@pytest.fixture
def store(root: Path) -> Iterator[Store]:
    with opened(root) as found:
        yield found


@pytest.mark.parametrize(
    ("point", "outcome"),
    [
        ("before_publish", "failed"),
        ("marked", "completed"),
        ("exchanged", "completed"),
        ("renamed_in", "completed"),
        ("marked:2", "completed"),
        ("exchanged:2", "completed"),
        ("renamed_in:2", "completed"),
        ("renamed_away", "completed"),
        ("renamed_away:2", "completed"),
        ("before_commit", "completed"),
        ("after_commit", "over"),
        ("before_cleanup", "over"),
    ],
)
def test_a_crash_is_finished_or_undone_and_nothing_is_seen_twice(
    root: Path, store: Store, point: str, outcome: str
) -> None:
    killed(root, point, can_exchange="away" not in point)
    found = recover(store, root)
    assert [r.outcome for r in found] == ([] if outcome == "over" else [outcome])
    now = contents(root, FIRST), contents(root, SECOND)
    assert now == (OLD if outcome == "failed" else NEW)
    run = store.run("LAST")
    assert run.status == ("failed" if outcome == "failed" else "completed")
    assert [d.version for d in store.dataset_versions("gl_usd")] == ([1] if outcome == "failed" else [1, 2])
    assert store.locks() == ()
    assert left_behind(root) == ((run.id,) if outcome == "failed" else ())
    assert recover(store, root) == ()
    staged_run(root, store, "next", number=3).publish()
    assert (contents(root, FIRST), contents(root, SECOND)) == (["next 20"], ["next 30"])


def test_the_failure_of_a_dead_process_says_what_to_do(root: Path, store: Store) -> None:
    killed(root, "before_publish")
    (found,) = recover(store, root)
    assert found.note.code == "W1502"
    assert "weft run --resume" in found.note.help
    failure = store.run(found.run_id).failure
    assert failure is not None
    assert failure.code == "W1502"


def test_a_new_run_recovers_the_dead_one_by_itself(root: Path, store: Store) -> None:
    killed(root, "exchanged")
    staged_run(root, store, "next", number=3).publish()
    assert [r.status for r in store.runs()] == ["completed"] * 3
    assert (contents(root, FIRST), contents(root, SECOND)) == (["next 20"], ["next 30"])


def test_a_crash_whose_staged_files_were_lost_is_taken_back(root: Path, store: Store) -> None:
    killed(root, "renamed_in")  # the first output is at its target, the second is staged
    (run_id,) = left_behind(root)
    for file in (root / ".weft" / "stage" / run_id / "30").iterdir():
        file.unlink()
    (found,) = recover(store, root)
    assert found.outcome == "failed"
    assert (contents(root, FIRST), contents(root, SECOND)) == OLD
    failure = store.run(run_id).failure
    assert failure is not None
    assert (failure.code, "every target is as it was" in failure.detail) == ("W1512", True)
    assert {o.state for o in store.outputs(run_id)} == {"discarded"}


def test_a_crash_while_it_is_taken_back_is_finished_too(root: Path, store: Store) -> None:
    """The second output is lost, so the first goes back; that is interrupted, and done once more."""
    killed(root, "renamed_in")
    (run_id,) = left_behind(root)
    stage = root / ".weft" / "stage" / run_id
    for file in (stage / "30").iterdir():
        file.unlink()
    killed_recovering(root)
    (found,) = recover(store, root)
    assert found.outcome == "failed"
    assert (contents(root, FIRST), contents(root, SECOND)) == OLD
    # The first output is staged again as it was written.
    assert [p.read_text(encoding="utf-8") for p in (stage / "20").iterdir()] == ["new 20"]


def test_a_target_that_must_not_exist_is_not_replaced_by_recovery(tmp_path: Path) -> None:
    found = sample_workspace(
        tmp_path,
        {"projects/fx_reporting.yml": TWO_OUTPUTS.replace("register_as_dataset: gl_usd", "mode: fail_if_exists")},
    )
    killed(found, "marked")
    (found / FIRST).mkdir(parents=True)
    (found / FIRST / "theirs").write_text("theirs", encoding="utf-8")
    with opened(found) as store:
        (recovered,) = recover(store, found)
        assert recovered.outcome == "failed"
        assert contents(found, FIRST) == ["theirs"]


@pytest.fixture
def next_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recover as the next command does: a process that waits for a publication has ended."""
    monkeypatch.setattr("weft.pipelines.store.locks.stale", lambda *_: True)


@pytest.mark.usefixtures("next_command")
@pytest.mark.parametrize(
    ("point", "outcome", "next_step"),
    [
        ("marked", "failed", "replace the link with a folder; then `weft run --resume {run}` continues the run"),
        ("renamed_in", "failed", "replace the link with a folder; then `weft run --resume {run}` continues the run"),
        ("marked:2", "failed", "replace the link with a folder; then `weft run --resume {run}` continues the run"),
        ("exchanged:2", "waiting", "replace the link with a folder; then the next run completes it"),
        ("renamed_in:2", "waiting", "replace the link with a folder; then the next run completes it"),
    ],
)
def test_a_target_that_became_a_link_out_of_the_workspace_stops_only_its_own_run(
    root: Path,
    store: Store,
    tmp_path_factory: pytest.TempPathFactory,
    point: str,
    outcome: str,
    next_step: str,
) -> None:
    """The folder of the second target was moved to another place, and a link put where it was."""
    killed(root, point)
    (run_id,) = left_behind(root)
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "exports"
    (root / "exports").rename(elsewhere)
    (root / "exports").symlink_to(elsewhere, target_is_directory=True)
    there = contents(elsewhere, "gl/period=2026-01")

    (found,) = recover(store, root)
    assert (found.run_id, found.outcome) == (run_id, outcome)
    assert f"run {short_id(run_id)} of fx_reporting for 2026-01" in found.note.message
    assert f"output '{SECOND}' now leads out of the workspace, to '{elsewhere}/gl/period=2026-01'" in found.note.message
    assert found.note.help == next_step.format(run=short_id(run_id))
    assert contents(elsewhere, "gl/period=2026-01") == there

    (root / "exports").unlink()
    elsewhere.rename(root / "exports")
    assert [r.outcome for r in recover(store, root)] == ([] if outcome == "failed" else ["completed"])
    assert (contents(root, FIRST), contents(root, SECOND)) == (OLD if outcome == "failed" else NEW)
    staged_run(root, store, "next", number=3).publish()
    assert (contents(root, FIRST), contents(root, SECOND)) == (["next 20"], ["next 30"])


def test_a_snapshot_that_cannot_be_planned_any_more_stops_only_its_own_run(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(root, "renamed_in")

    def replay(*_: object) -> None:
        raise ActivationError("unknown operation 'pivot'", code="W1401")

    monkeypatch.setattr(publish, "replay_plan", replay)
    (found,) = recover(store, root)
    assert (found.outcome, "unknown operation 'pivot'" in found.note.message) == ("failed", True)
    assert (contents(root, FIRST), contents(root, SECOND)) == OLD


def test_a_folder_that_cannot_go_back_stops_only_its_own_run(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(root, "renamed_in")
    (run_id,) = left_behind(root)
    for file in (root / ".weft" / "stage" / run_id / "30").iterdir():
        file.unlink()

    def exchange(*_: Path) -> bool:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    workspace = load_workspace(root).workspace
    session: Any = SimpleNamespace(spark=None, described=dict)
    with monkeypatch.context() as patched:
        patched.setattr(moving, "exchange", exchange)
        with pytest.raises(RunError, match=r"(?s)W1501.*warning\[W1502\]: run .* Read-only file system") as caught:
            run_project(workspace, workspace.projects[0], "2026-01", store=store, session=session)
    assert caught.value.code == "W1501"
    monkeypatch.setattr("weft.pipelines.store.locks.stale", lambda *_: True)
    assert [r.outcome for r in recover(store, root)] == ["failed"]
    assert (contents(root, FIRST), contents(root, SECOND)) == OLD


def test_a_run_at_work_is_left_alone(root: Path, store: Store) -> None:
    run = staged_run(root, store, "new", number=2)
    assert recover(store, root) == ()
    assert store.run(run.run_id).status == "running"
    with pytest.raises(RunError, match="W1501"):
        staged_run(root, store, "next", number=3)


def test_what_nobody_knows_of_is_removed(root: Path, store: Store) -> None:
    (root / ".weft" / "stage" / "019a86f6-dead" / "20").mkdir(parents=True)
    recover(store, root)
    assert left_behind(root) == ()
