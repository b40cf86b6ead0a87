"""StorePath does in a store what `pathlib.Path` does on a disk."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from weft.io.stores.store_path import Place, StorePath, as_place, spark_path
from weft.streams.checkpoint.folder import copy_folder, move_file, remove_path


@pytest.fixture(params=["disk", "store"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return an empty folder, as a path and as a place in a store of local files."""
    from weft.io.stores import open_store

    return tmp_path if request.param == "disk" else StorePath(open_store(str(tmp_path)), "below")


def write(path: Place, text: str) -> Place:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def names(paths: object) -> list[str]:
    return sorted(path.name for path in paths)  # type: ignore[attr-defined]


def test_files_are_found_by_part(root: Place) -> None:
    for name in ("a/1.json", "a/2.json", "a/b/3.json", "c.txt"):
        write(root / name, name)
    assert names((root / "a").iterdir()) == ["1.json", "2.json", "b"]
    assert names(root.glob("*/*.json")) == ["1.json", "2.json"]
    assert names(root.rglob("*.json")) == ["1.json", "2.json", "3.json"]
    assert names(root.glob("a*")) == ["a"]
    assert ((root / "a").is_dir(), (root / "a").is_file(), (root / "c.txt").is_file()) == (True, False, True)
    assert ((root / "a").exists(), (root / "d").exists()) == (True, False)
    assert (root / "a/b/3.json").read_bytes() == b"a/b/3.json"
    with (root / "c.txt").open("rb") as file:
        assert file.read() == b"c.txt"
    assert (root / "c.txt").stat().st_size == 5


def test_names_are_those_of_a_path(root: Place) -> None:
    path = root / "a" / "b.tar.gz"
    assert (path.name, path.stem, path.suffix, path.parent.name) == ("b.tar.gz", "b.tar", ".gz", "a")
    assert path.with_name("c").name == "c"
    assert root / "a" in path.parents
    assert pickle.loads(pickle.dumps(path)) == path  # noqa: S301  # ours
    assert (path == root / "a/b.tar.gz", path.absolute() == path.resolve()) == (True, True)
    assert sorted([root / "b", root / "a"], key=str) == [root / "a", root / "b"]


def test_files_move_and_go(root: Place) -> None:
    one = write(root / "a/1", "one")
    write(root / "a/2", "two")
    move_file(one, root / "3")
    assert (one.exists(), (root / "3").read_text()) == (False, "one")
    if isinstance(one, StorePath):
        move_file(one, root / "3")  # as by another process at the same time
    copy_folder(root / "a", root / "copied")
    assert names((root / "copied").iterdir()) == ["2"]
    remove_path(root / "a")
    remove_path(root / "a")
    assert not (root / "a").exists()
    (root / "3").unlink()
    (root / "3").unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError):
        (root / "3").unlink()


def test_an_address_is_a_place_in_its_bucket() -> None:
    place = as_place("s3a://lake/a/b/")
    assert isinstance(place, StorePath)
    assert (str(place), place.key, str(place.parent)) == ("s3://lake/a/b", "a/b", "s3://lake/a")
    assert (str(as_place("s3://lake")), str(as_place("s3://lake") / "x")) == ("s3://lake", "s3://lake/x")
    assert spark_path(place) == "s3a://lake/a/b"
    assert isinstance(as_place("data/x"), Path)
    assert isinstance(as_place("file:///data/x"), Path)
