"""Publishing plain staged folders: all outputs together, in every mode, or none."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine_data import CONVERT, project_text, sample_workspace
from staged_runs import TARGETS, TWO_OUTPUTS, contents, opened, staged_run
from weft.errors import RunError
from weft.run import moving
from weft.run.places import stage_root, staged_runs
from weft.store.writer import Store

FIRST, SECOND = TARGETS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return sample_workspace(tmp_path, {"projects/fx_reporting.yml": TWO_OUTPUTS})


@pytest.fixture
def store(root: Path) -> Iterator[Store]:
    with opened(root) as found:
        yield found


def with_mode(tmp_path: Path, mode: str) -> Path:
    output = f"""\
- seq: 20
  name: Write
  type: output
  arguments:
    destination: {{datasource_id: warehouse, table: processed_gl}}
    columns: [journal_id, amount_reporting]
    mode: {mode}
"""
    return sample_workspace(tmp_path, {"projects/fx_reporting.yml": project_text([CONVERT, output])})


def test_every_output_comes_to_its_target_and_nothing_stays_staged(root: Path, store: Store) -> None:
    run = staged_run(root, store)
    run.publish()
    assert (contents(root, FIRST), contents(root, SECOND)) == (["new 20"], ["new 30"])
    assert store.run(run.run_id).status == "completed"
    assert {o.state for o in store.outputs(run.run_id)} == {"published"}
    assert staged_runs(root) == ()
    assert store.locks() == ()


def test_a_second_run_replaces_the_period_and_registers_the_next_version(root: Path, store: Store) -> None:
    staged_run(root, store, "old", number=1).publish()
    run = staged_run(root, store, "new", number=2)
    run.publish()
    assert contents(root, FIRST) == ["new 20"]
    assert [d.version for d in store.dataset_versions("gl_usd")] == [1, 2]
    first = {o.seq: o for o in store.outputs(run.run_id)}[20]
    assert (first.register_as, first.dataset_version) == ("gl_usd", 2)


def test_a_registered_dataset_says_its_columns_key_and_place(root: Path, store: Store) -> None:
    staged_run(root, store).publish()
    (found,) = store.registered()
    names = [c.name for c in found.dataset.main_table.columns]
    assert names == ["journal_id", "line_number", "currency", "amount_local", "amount_reporting"]
    assert found.dataset.natural_key_columns == ("journal_id", "line_number")
    assert found.dataset.main_table.temporal_mode == "period"
    assert [(p.period, p.path, p.format) for p in found.locations] == [("2026-01", FIRST, "parquet")]


def test_append_keeps_what_was_there_and_replaces_its_own_files(tmp_path: Path) -> None:
    root = with_mode(tmp_path, "append")
    with opened(root) as store:
        staged_run(root, store, "old", number=1).publish()
        run = staged_run(root, store, "new", number=2)
        own = root / FIRST / f"part-{run.run_id}-00000.parquet"
        own.write_text("of an earlier try", encoding="utf-8")
        run.publish()
        assert contents(root, FIRST) == ["new 20", "old 20"]


def test_fail_if_exists_is_refused_before_a_run_begins(tmp_path: Path) -> None:
    root = with_mode(tmp_path, "fail_if_exists")
    with opened(root) as store:
        staged_run(root, store, "old").publish()
        with pytest.raises(RunError, match=r"W1507.*processed_gl/period=2026-01 already exists"):
            staged_run(root, store, "new", number=2)
        assert len(store.runs()) == 1


def test_a_target_that_appears_while_the_run_works_is_found_before_anything_moves(tmp_path: Path) -> None:
    root = with_mode(tmp_path, "fail_if_exists")
    with opened(root) as store:
        run = staged_run(root, store)
        (root / FIRST).mkdir(parents=True)
        with pytest.raises(RunError, match="W1507"):
            run.publish()
        assert {o.state for o in store.outputs(run.run_id)} == {"staged"}
        assert contents(root, FIRST) == []


def test_a_single_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    output = (
        '- {seq: 20, name: Write, type: output, arguments: {destination: {path: "exports/{{period}}.csv"}}}'
    )
    root = sample_workspace(tmp_path, {"projects/fx_reporting.yml": project_text([CONVERT, output])})
    with opened(root) as store:
        staged_run(root, store, "old", number=1).publish()
        staged_run(root, store, "new", number=2).publish()
    assert (root / "exports" / "2026-01.csv").read_text(encoding="utf-8") == "new 20"
    assert [p.name for p in (root / "exports").iterdir()] == ["2026-01.csv"]


def test_staged_data_that_somebody_changed_is_not_published(root: Path, store: Store) -> None:
    staged_run(root, store, "old", number=1).publish()
    run = staged_run(root, store, "new", number=2)
    next(Path(run.moves[1].output.stage).iterdir()).write_text("tampered", encoding="utf-8")
    with pytest.raises(RunError, match=r"W1512.*output 30.*is not what was written"):
        run.publish()
    assert (contents(root, FIRST), contents(root, SECOND)) == (["old 20"], ["old 30"])


def test_a_move_that_fails_puts_every_target_back(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged_run(root, store, "old", number=1).publish()
    run = staged_run(root, store, "new", number=2)
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if self == run.moves[1].source:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(RunError, match=r"W1508.*no room"):
        run.publish()
    monkeypatch.undo()
    assert (contents(root, FIRST), contents(root, SECOND)) == (["old 20"], ["old 30"])
    assert {o.state for o in store.outputs(run.run_id)} == {"staged"}
    run.publish()
    assert (contents(root, FIRST), contents(root, SECOND)) == (["new 20"], ["new 30"])


def test_a_folder_that_cannot_be_moved_says_why(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = staged_run(root, store)

    def rename(_self: Path, _target: Path) -> Path:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(RunError, match=r"W1512.*Permission denied"):
        run.publish()


def test_a_target_on_another_disk_is_staged_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "mnt"
    monkeypatch.setattr("weft.run.places._disk", lambda p: 2 if p.is_relative_to(other) else 1)
    assert stage_root(other / "gl" / "period=1", tmp_path) == other / "gl" / ".weft_stage"
    assert stage_root(tmp_path / "out" / "period=1", tmp_path) == tmp_path / ".weft" / "stage"


def test_two_runs_do_not_publish_to_one_target_at_once(root: Path, store: Store) -> None:
    run = staged_run(root, store)
    store.begin_publish(run.run_id, [m.output for m in run.moves])
    other = sample_workspace(root / "other", {"projects/fx_reporting.yml": TWO_OUTPUTS})
    with opened(root) as second:
        text = TWO_OUTPUTS.replace("0000000000f1", "0000000000f2").replace("fx_reporting", "fx_other")
        (root / "projects" / "fx_reporting.yml").write_text(text, encoding="utf-8")
        rival = staged_run(root, second, number=3)
        with pytest.raises(RunError, match=r"W1501.*publishes to"):
            rival.publish()
    assert contents(other, FIRST) == []


def test_verify_wants_every_file(root: Path, store: Store) -> None:
    move = staged_run(root, store).moves[0]
    moving.verify(move)
    next(Path(move.output.stage).iterdir()).unlink()
    with pytest.raises(RunError, match=r"W1512.*is not there"):
        moving.verify(move)
    assert not moving.is_whole(move)
    gone = replace(move, output=replace(move.output, stage=str(root / "nowhere")))
    with pytest.raises(RunError, match="neither staged nor at its target"):
        moving.move_in(gone)
