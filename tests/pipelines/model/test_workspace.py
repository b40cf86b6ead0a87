"""A folder of files as one workspace: what is read, what is skipped, what is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine_data import sample_workspace
from entity_texts import DATASET, ORDERS, workspace
from weft.errors import Diagnostic
from weft.io.location import PUBLISHED
from weft.io.options import SparkSettings
from weft.pipelines.model.operation import Unread
from weft.pipelines.model.read_workspace import find_root, load_workspace
from weft.pipelines.model.workspace import DEFAULT_STORE


def codes(findings: tuple[Diagnostic, ...]) -> list[tuple[str, str | None]]:
    return [(f.code, f.at.file if f.at else None) for f in findings]


def test_the_sample_reads_without_a_finding(tmp_path: Path) -> None:
    root = sample_workspace(tmp_path)
    loaded = load_workspace(root)
    assert loaded.findings == ()
    found = loaded.workspace
    assert [d.name for d in found.datasets] == ["budgets", "exchange_rates", "gl"]
    assert [p.name for p in found.projects] == ["fx_reporting"]
    assert [s.name for s in found.scenarios] == ["FX conversion by runtime join"]
    assert found.settings.default_resolver == "files"
    assert len(found.files) == 9
    assert loaded.readable == found


def test_an_empty_folder_is_a_workspace_with_defaults(tmp_path: Path) -> None:
    found = load_workspace(tmp_path).workspace
    assert found.settings.store == DEFAULT_STORE
    assert found.files == ()


@pytest.mark.parametrize("text", ["", "# no keys\n", "weft: 1\n"])
def test_a_settings_file_may_say_nothing(tmp_path: Path, text: str) -> None:
    loaded = load_workspace(workspace(tmp_path, {"weft.yml": text}))
    assert loaded.findings == ()
    assert loaded.workspace.settings.spark == SparkSettings()


def test_settings_are_read(tmp_path: Path) -> None:
    text = (
        "weft: 1\nstore: postgresql://db/weft\nspark: {remote: 'sc://x', conf: {spark.sql.shuffle.partitions: 8, a: true}}\n"
        "sandbox: {path: box}\nconformance: strict\nnotify: [{mail: ann}]\n"
    )
    found = load_workspace(workspace(tmp_path, {"weft.yml": text})).workspace.settings
    assert (found.store, found.sandbox.path, found.conformance) == ("postgresql://db/weft", "box", "strict")
    assert found.spark.remote == "sc://x"
    assert dict(found.spark.conf) == {"spark.sql.shuffle.partitions": "8", "a": "true"}


def test_hidden_and_private_files_are_skipped_and_both_endings_read(tmp_path: Path) -> None:
    files = {
        "datasets/orders.yaml": DATASET,
        "datasets/.old.yml": "not: [yaml",
        "datasets/_draft.yml": "not: [yaml",
        "datasets/_old/orders.yml": "not: [yaml",
        "datasets/notes.txt": "not: [yaml",
        "projects/deep/orders.yml": ORDERS,
    }
    loaded = load_workspace(workspace(tmp_path, files))
    assert loaded.findings == ()
    assert [p.name for p in loaded.workspace.files] == ["orders.yaml", "orders.yml"]


def test_a_file_that_fails_is_left_out_and_the_rest_is_read(tmp_path: Path) -> None:
    files = {"datasets/orders.yml": DATASET, "datasets/broken.yml": "a: [", "projects/p.yml": ORDERS}
    loaded = load_workspace(workspace(tmp_path, files))
    assert codes(loaded.findings) == [("W1001", "datasets/broken.yml")]
    assert [d.name for d in loaded.workspace.datasets] == ["orders"]
    assert loaded.errors == loaded.findings


def test_a_project_with_a_mistake_is_only_readable(tmp_path: Path) -> None:
    text = ORDERS.replace("operations", "colour: red\noperations")
    loaded = load_workspace(workspace(tmp_path, {"projects/p.yml": text}))
    assert loaded.workspace.projects == ()
    assert [p.name for p in loaded.readable.projects] == ["orders_report"]


def test_a_lost_operation_that_could_have_made_columns_leaves_a_mark(tmp_path: Path) -> None:
    text = """\
project: p
input: orders
operations:
  - {seq: 10, name: a, type: delete}
  - {seq: 20, name: b, type: output}
  - {seq: 30, name: c, type: delete}
  - {seq: 40, name: d, type: update, arguments: {assignments: [{column: x}]}}
  - {seq: 50, name: e, type: delete}
"""
    loaded = load_workspace(workspace(tmp_path, {"projects/p.yml": text}))
    (found,) = loaded.readable.projects
    assert [op.seq for op in found.operations] == [10, 30, 40, 50]
    assert [isinstance(op.arguments, Unread) for op in found.operations] == [False, False, True, False]
    assert [f.code for f in loaded.findings] == ["W1003", "W1003"]


def test_a_file_that_is_not_text_is_reported(tmp_path: Path) -> None:
    root = workspace(tmp_path, {"projects/p.yml": ""})
    (root / "projects/p.yml").write_bytes(b"\xff\xfe\x00")
    (found,) = load_workspace(root).findings
    assert (found.code, found.message) == ("W1001", "the file cannot be read: it is not UTF-8")


def test_a_byte_order_mark_and_windows_lines_are_read(tmp_path: Path) -> None:
    root = workspace(tmp_path, {"projects/p.yml": ""})
    (root / "projects/p.yml").write_bytes(b"\xef\xbb\xbf" + ORDERS.replace("\n", "\r\n").encode())
    loaded = load_workspace(root)
    assert loaded.findings == ()
    assert loaded.workspace.projects[0].name == "orders_report"


def test_only_limits_what_is_reported_and_not_what_is_read(tmp_path: Path) -> None:
    files = {"datasets/a.yml": "x: 1", "projects/p.yml": "y: 1"}
    root = workspace(tmp_path, files)
    assert {file for _, file in codes(load_workspace(root, only=root / "projects").findings)} == {"projects/p.yml"}
    assert {file for _, file in codes(load_workspace(root, only=root / "datasets/a.yml").findings)} == {
        "datasets/a.yml"
    }


def test_findings_are_in_the_order_of_the_files(tmp_path: Path) -> None:
    files = {"projects/b.yml": "y: 1\nx: 2", "projects/a.yml": "z: 1"}
    found = load_workspace(workspace(tmp_path, files)).findings
    places = [(f.at.file, f.at.range["start"]["line"]) for f in found if f.at is not None]
    assert places == sorted(places, key=lambda place: (str(place[0]), place[1]))
    assert len(places) == len(found)


def test_later_findings_join_without_repeating_a_place(tmp_path: Path) -> None:
    text = ORDERS.replace("{seq: 1, name: d, type: delete}", "{seq: 1, name: u, type: update, arguments: {assignments: "
                          '[{column: a, expression: ""}]}}')  # fmt: skip
    loaded = load_workspace(workspace(tmp_path, {"projects/p.yml": text}))
    (empty,) = loaded.findings
    inside = Diagnostic("W0201", "nothing there", help="write", at=empty.at)
    elsewhere = Diagnostic("W0201", "something", help="write", at=None)
    remark = Diagnostic(
        "W1401", "nothing follows", help="add", severity="warning", at=loaded.readable.projects[0].at.whole
    )
    assert loaded.merge_findings([inside, elsewhere, elsewhere, remark]) == (elsewhere, empty)


def test_the_root_is_the_nearest_folder_with_settings(tmp_path: Path) -> None:
    root = workspace(tmp_path, {"weft.yml": "", "projects/p.yml": ORDERS})
    assert find_root(root / "projects") == root.resolve()
    assert find_root(root / "projects/p.yml") == root.resolve()
    bare = tmp_path.parent / f"{tmp_path.name}-bare"
    bare.mkdir()
    assert find_root(bare) == bare.resolve()


def test_the_parent_of_a_period_may_have_a_number_as_its_name(tmp_path: Path) -> None:
    calendar = (
        "calendar: fiscal\nlevels: [{name: year}, {name: half, parent: year}]\nperiods:\n"
        "  - {identifier: 2026, level: year, start_date: 2025-07-01, end_date: 2026-06-30}\n"
        "  - {identifier: H1, level: half, parent: 2026, start_date: 2025-07-01, end_date: 2025-12-31}\n"
    )
    loaded = load_workspace(workspace(tmp_path, {"calendars/f.yml": calendar}))
    assert loaded.findings == ()
    fiscal = loaded.workspace.calendars[0].calendar
    assert fiscal.parent(fiscal.parse("H1"), "year") == fiscal.parse("2026")


def test_the_default_calendar_of_the_workspace_is_that_of_its_projects(tmp_path: Path) -> None:
    calendar = (
        "calendar: fiscal\nis_default: true\nlevels: [{name: year}]\n"
        "periods: [{identifier: 2026, level: year, start_date: 2025-07-01, end_date: 2026-06-30}]\n"
    )
    own = ORDERS.replace("orders_report", "own").replace("input", "calendar: gregorian\ninput")
    files = {"calendars/f.yml": calendar, "projects/a.yml": ORDERS, "projects/b.yml": own}
    loaded = load_workspace(workspace(tmp_path, files))
    assert loaded.findings == ()
    assert [p.calendar for p in loaded.workspace.projects] == ["fiscal", "gregorian"]
    (found,) = loaded.workspace.calendars
    assert found.calendar.parse("2026").level == "year"


def test_a_dataset_that_a_run_registered_may_name_its_resolver(tmp_path: Path) -> None:
    text = DATASET.replace("  name: orders\n  main", f"  name: orders\n  resolver_id: {PUBLISHED}\n  main")
    assert load_workspace(workspace(tmp_path, {"datasets/o.yml": text})).findings == ()
