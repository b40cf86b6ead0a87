"""Paths below the prefix of a datasource, and the ways out of it that are closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from resolvers import source
from weft.errors import ResolutionError
from weft.io.location import Location, full_path, list_data_files


def at(path: str, datasource: str = "files") -> Location:
    return Location(
        datasource_id=datasource,
        path=path,
        period_identifier="2026-01",
        data_level="any",
        resolver_id="r",
        resolver_version=1,
        rule_name="all",
    )


@pytest.mark.parametrize(
    ("prefix", "path", "whole"),
    [
        ("data", "gl.csv", "{root}/data/gl.csv"),
        ("", "gl.csv", "{root}/gl.csv"),
        ("", "/mnt/gl.csv", "/mnt/gl.csv"),
        ("/mnt", "gl.csv", "/mnt/gl.csv"),
        ("/mnt", "/mnt/a/gl.csv", "/mnt/a/gl.csv"),
        ("data", "sales report/*.csv", "{root}/data/sales report/*.csv"),
        ("s3a://lake/gl", "2026/*.parquet", "s3a://lake/gl/2026/*.parquet"),
        ("s3a://lake/gl/", "/2026", "s3a://lake/gl/2026"),
        ("", "s3a://lake/gl", "s3a://lake/gl"),
        ("file:///mnt/a%20b", "gl.csv", "/mnt/a b/gl.csv"),
    ],
)
def test_a_path_is_joined_to_its_prefix(tmp_path: Path, prefix: str, path: str, whole: str) -> None:
    options = {"path_prefix": prefix} if prefix else {}
    assert full_path(at(path), source(**options), tmp_path) == whole.format(root=tmp_path)


@pytest.mark.parametrize(
    ("prefix", "path"),
    [
        ("data", "../weft.yml"),
        ("data", "a/../../weft.yml"),
        ("data", "/etc/passwd"),
        ("/mnt/data", "/mnt/database/x"),
        ("", "../../other/x.csv"),
        ("s3a://lake/gl", "../secret"),
        ("data", "{..,a}/weft.yml"),
        ("s3a://lake/gl", "{..,a}/secret"),
        ("data", "link/x.csv"),
        ("data", "l*/x.csv"),
        ("data", "file:///etc/passwd"),
    ],
)
def test_a_path_that_leads_out_of_its_prefix_is_refused(tmp_path: Path, prefix: str, path: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.csv").write_text("id\n")
    (tmp_path / "data" / "link").symlink_to(tmp_path / "outside")
    options = {"path_prefix": prefix} if prefix else {}
    with pytest.raises(ResolutionError) as caught:
        full_path(at(path), source(**options), tmp_path)
    assert caught.value.code == "W1311"
    assert path in caught.value.message


def test_a_prefix_may_itself_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "far")
    assert full_path(at("x.csv"), source(path_prefix="data"), tmp_path) == str(tmp_path / "data" / "x.csv")


def test_published_data_may_be_anywhere(tmp_path: Path) -> None:
    assert full_path(at("/elsewhere/x", "weft:published"), None, tmp_path) == "/elsewhere/x"
    assert full_path(at("out/x", "weft:published"), None, tmp_path) == str(tmp_path / "out" / "x")


def test_data_files_are_those_that_spark_reads(tmp_path: Path) -> None:
    for name in (
        "b.csv",
        "a.csv",
        "_SUCCESS",
        ".a.csv.crc",
        "period=2026-01/c.csv",
        "_temp/d.csv",
        "_e=1/f.csv",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    names = [str(f.relative_to(tmp_path)) for f in list_data_files(str(tmp_path))]
    assert names == ["_e=1/f.csv", "a.csv", "b.csv", "period=2026-01/c.csv"]
    assert list_data_files(str(tmp_path / "_SUCCESS")) == (tmp_path / "_SUCCESS",)
    assert [f.name for f in list_data_files(str(tmp_path / "*"))] == ["a.csv", "b.csv", "c.csv"]
    assert list_data_files(str(tmp_path / "none.csv")) == ()
