"""Single keys are set in a file that somebody wrote, and nothing else in it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine_data import FX
from refusals import refused
from weft.errors import EntityError
from weft.pipelines.model.rewrite import set_keys

TEXT = """\
# yaml-language-server: $schema=../.weft/schema/project.json
project:
  name: p            # the name
  status: draft      # not yet
  input: "gl"

  operations:
    # first
    - {seq: 10, name: 'd', type: delete}
    - seq: 20
      name: >
        folded
        text
      type: delete
"""


def changed(tmp_path: Path, text: str, **keys: object) -> str:
    path = tmp_path / "p.yml"
    path.write_text(text, encoding="utf-8")
    set_keys(path, keys)
    return path.read_text(encoding="utf-8")


def test_a_key_is_changed_and_the_rest_stays(tmp_path: Path) -> None:
    assert changed(tmp_path, TEXT, status="active") == TEXT.replace("status: draft ", "status: active")


def test_a_new_key_is_written_where_it_belongs(tmp_path: Path) -> None:
    found = changed(tmp_path, TEXT, version=2)
    assert found == TEXT.replace("# the name\n", "# the name\n  version: 2\n")


def test_a_key_is_removed(tmp_path: Path) -> None:
    assert "status" not in changed(tmp_path, TEXT, status=None)


def test_the_same_value_changes_nothing(tmp_path: Path) -> None:
    assert changed(tmp_path, TEXT, status="draft", input="gl") == TEXT


def test_a_file_without_a_root_key_is_changed_at_its_top(tmp_path: Path) -> None:
    assert changed(tmp_path, "name: p\nstatus: draft\n", status="active") == "name: p\nstatus: active\n"
    assert changed(tmp_path, "project: p\nstatus: draft\n", status="active") == "project: p\nstatus: active\n"


@pytest.mark.parametrize("path", sorted(FX.rglob("*.yml")), ids=lambda p: p.stem)
def test_every_sample_file_survives_a_change_and_back(tmp_path: Path, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    once = changed(tmp_path, text, marker="x")
    assert "marker: x" in once
    assert changed(tmp_path, once, marker=None) == text


def test_the_rights_of_the_file_stay_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "p.yml"
    path.write_text(TEXT, encoding="utf-8")
    path.chmod(0o640)
    set_keys(path, {"status": "active"})
    assert path.stat().st_mode & 0o777 == 0o640
    assert [file.name for file in tmp_path.iterdir()] == ["p.yml"]


def test_a_file_that_is_not_yaml_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "p.yml"
    path.write_text("a: [", encoding="utf-8")
    with refused(EntityError, "W1001", "invalid YAML"):
        set_keys(path, {"status": "active"})
    assert path.read_text(encoding="utf-8") == "a: ["


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.yml"
    path.write_text(TEXT, encoding="utf-8")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("weft.pipelines.model.rewrite.os.replace", full)
    with pytest.raises(OSError, match="No space"):
        set_keys(path, {"status": "active"})
    assert path.read_text(encoding="utf-8") == TEXT
    assert [file.name for file in tmp_path.iterdir()] == ["p.yml"]


@pytest.mark.parametrize(("before", "value", "after"), [("1", True, "true"), ("true", 1, "1")])
def test_a_value_of_another_type_is_another_value(tmp_path: Path, before: str, value: object, after: str) -> None:
    assert changed(tmp_path, f"key: {before}\n", key=value) == f"key: {after}\n"
