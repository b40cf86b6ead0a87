"""The checkpoint folder: what a start finds there, and what it refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from stream_checkpoints import on_disk, run
from weft.core.frozen import FrozenMap
from weft.errors import StreamError
from weft.streams.checkpoint.folder import (
    JobRecord,
    activate,
    create_checkpoint,
    find_checkpoint,
    read_job_record,
    record_change,
    update_plan,
)
from weft.streams.checkpoint.manifest import (
    last_batch,
    last_manifest,
    read_heartbeat,
    sink_files,
    with_aliases,
)
from weft.streams.kernel.spec import with_checksum

PARTS: FrozenMap[str, str] = FrozenMap(keys="o.id = s.id", where="")


def test_a_statement_that_never_ran_has_no_checkpoint(tmp_path: Path) -> None:
    assert find_checkpoint(tmp_path / "status") is None


def test_a_new_checkpoint_is_not_in_use_before_it_is_activated(tmp_path: Path) -> None:
    made = create_checkpoint(tmp_path, JobRecord(groups=2, parts=PARTS))
    assert find_checkpoint(tmp_path) is None
    activate(made)
    assert find_checkpoint(tmp_path) == made


def test_what_a_checkpoint_is_of_reads_back(tmp_path: Path) -> None:
    given = JobRecord(groups=3, parts=PARTS, plan=FrozenMap(text="left join"), weft="1.2", replaces="abc-1")
    made = create_checkpoint(tmp_path, given)
    found = read_job_record(made)
    assert (found.groups, found.parts, found.plan, found.weft) == (
        3,
        PARTS,
        FrozenMap(text="left join"),
        "1.2",
    )
    assert (found.replaces, found.engine, found.format, found.first_batch) == ("abc-1", "kernel", 2, 0)
    assert found.created > 0


def test_beginning_again_makes_another_folder_with_an_id_of_its_own(tmp_path: Path) -> None:
    one, other = (create_checkpoint(tmp_path, JobRecord(groups=1, parts=PARTS)) for _ in range(2))
    assert one.name.endswith("-1")
    assert other.name.endswith("-2")
    assert one.name[:-2] == other.name[:-2]
    assert read_job_record(one).id != read_job_record(other).id
    assert len(read_job_record(one).id) == 8


def test_another_plan_has_a_folder_of_another_name(tmp_path: Path) -> None:
    one = create_checkpoint(tmp_path, JobRecord(groups=1, parts=PARTS))
    other = create_checkpoint(tmp_path, JobRecord(groups=1, parts=FrozenMap(keys="o.id = s.order_id")))
    assert one.name.partition("-")[0] != other.name.partition("-")[0]


def test_a_change_is_noted_with_what_was_before(tmp_path: Path) -> None:
    made = create_checkpoint(tmp_path, JobRecord(groups=2, parts=PARTS))
    record_change(made, {**PARTS, "where": "x > 1"}, {"text": "new"}, "state")
    found = read_job_record(made)
    assert found.parts["where"] == "x > 1"
    assert found.plan == {"text": "new"}
    (change,) = found.changes
    assert (change["kept"], change["parts"]) == ("state", PARTS)


@pytest.mark.parametrize(("key", "value"), [("format", 3), ("format", None), ("engine", "native")])
def test_a_checkpoint_of_another_format_or_engine_is_refused(tmp_path: Path, key: str, value: object) -> None:
    made = create_checkpoint(tmp_path, JobRecord(groups=2, parts=PARTS, weft="9.9"))
    given = json.loads(made.job_file.read_text())
    made.job_file.write_text(json.dumps(with_checksum({**given, key: value})))
    with pytest.raises(StreamError, match=r"reads formats up to 2 of engine 'kernel'") as caught:
        read_job_record(made)
    assert caught.value.code == "W2202"
    assert "9.9" in caught.value.help


@pytest.mark.parametrize("text", ["", "{", "[]", '{"checkpoint": "gone-1"}', '{"checkpoint": 3}'])
def test_a_pointer_that_leads_nowhere_is_refused(tmp_path: Path, text: str) -> None:
    activate(create_checkpoint(tmp_path, JobRecord(groups=2, parts=PARTS)))
    (tmp_path / "current.json").write_text(text)
    with pytest.raises(StreamError) as caught:
        find_checkpoint(tmp_path)
    assert caught.value.code == "W2202"
    assert "--fresh" in caught.value.help


def test_a_pointer_that_is_missing_beside_a_used_checkpoint_is_refused(tmp_path: Path) -> None:
    used = run(tmp_path, final=False).checkpoint
    folder = used.root.parent
    create_checkpoint(folder, JobRecord(groups=2, parts=PARTS))  # a start that was cut short: never used
    pointer = folder / "current.json"
    before = pointer.read_text()
    pointer.unlink()
    with pytest.raises(StreamError, match=r"current.json' is missing") as caught:
        find_checkpoint(folder)
    assert caught.value.code == "W2202"
    assert used.name in caught.value.message
    # The help is a command that works.
    _, _, command = caught.value.help.partition(f"to continue with {used.name!r}: ")
    subprocess.run(["bash", "-c", command.partition("; or")[0]], check=True)
    assert find_checkpoint(folder) == used
    assert read_job_record(used).id in before


def test_a_checkpoint_with_offsets_and_no_commit_counts_as_used(tmp_path: Path) -> None:
    made = create_checkpoint(tmp_path, JobRecord(groups=2, parts=PARTS))
    assert not made.is_used
    (made.spark / "offsets").mkdir(parents=True)
    assert made.is_used
    with pytest.raises(StreamError, match=r"current.json' is missing"):
        find_checkpoint(tmp_path)


def test_keys_of_a_later_version_in_job_json_do_no_harm(tmp_path: Path) -> None:
    made = create_checkpoint(tmp_path, JobRecord(groups=2, parts=PARTS))
    given = json.loads(made.job_file.read_text())
    made.job_file.write_text(json.dumps(with_checksum({**given, "colour": "red"})))
    assert read_job_record(made).groups == 2


def test_a_manifest_says_what_its_batch_did(tmp_path: Path) -> None:
    found = run(tmp_path).checkpoint
    manifest = last_manifest(found)
    assert manifest is not None
    assert (manifest.batch, last_batch(found), manifest.final) == (4, 4, True)
    assert manifest.total_rows == 6
    assert set(manifest.max_times) == {"o", "s"}
    assert manifest.ledger["left"]["in"] == 9
    assert manifest.rows_in == {"o": 0, "s": 0}
    assert set(manifest.last_rows) == {"o", "s"}
    assert set(manifest.stats) == {"left", "right"}


def test_a_manifest_names_its_files_relative_to_the_checkpoint(tmp_path: Path) -> None:
    before = run(tmp_path / "here").checkpoint
    (tmp_path / "here").rename(tmp_path / "there")
    after = find_checkpoint(tmp_path / "there" / "streams" / "status")
    assert after is not None
    assert after.name == before.name
    assert sink_files(after)
    assert all(path.exists() for path in sink_files(after))


def test_inputs_that_are_renamed_keep_what_they_have_shown(tmp_path: Path) -> None:
    manifest = last_manifest(run(tmp_path).checkpoint)
    assert manifest is not None
    assert manifest.aliases == {"left": "o", "right": "s"}
    assert with_aliases(manifest, {"left": "o", "right": "s"}) is manifest
    turned = with_aliases(manifest, {"left": "s", "right": "x"})
    assert turned.max_times == {"s": manifest.max_times["o"], "x": manifest.max_times["s"]}
    assert turned.last_rows == {"s": manifest.last_rows["o"], "x": manifest.last_rows["s"]}
    assert turned.aliases == {"left": "s", "right": "x"}


def test_how_an_unchanged_statement_reads_is_kept_up_to_date(tmp_path: Path) -> None:
    made = create_checkpoint(tmp_path, JobRecord(groups=2, parts=PARTS, plan=FrozenMap(text="o JOIN s")))
    before = made.job_file.stat().st_mtime_ns
    update_plan(made, {"text": "o JOIN s"})
    assert made.job_file.stat().st_mtime_ns == before
    update_plan(made, {"text": "a JOIN b"})
    assert (read_job_record(made).plan, read_job_record(made).changes) == (FrozenMap(text="a JOIN b"), ())


def test_a_heartbeat_is_there_before_and_stays(tmp_path: Path) -> None:
    found = run(tmp_path, final=False).checkpoint
    first, second = read_heartbeat(found, 0), read_heartbeat(found, 1)
    assert first is not None
    assert second is not None
    assert first.watermark is None
    assert second.watermark is not None
    assert second.clocks == ((second.watermark, second.watermark),)
    assert read_heartbeat(found, 99) is None


def test_a_folder_name_is_not_given_again_after_an_older_checkpoint_was_removed(tmp_path: Path) -> None:
    first, second = (create_checkpoint(tmp_path, JobRecord(groups=1, parts=PARTS)) for _ in range(2))
    kept = read_job_record(second)
    shutil.rmtree(on_disk(first.root))
    third = create_checkpoint(tmp_path, JobRecord(groups=2, parts=PARTS))
    assert third.name.endswith("-3")
    assert read_job_record(second) == kept
