"""Fingerprints of inputs and the options of datasources, without Spark."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from resolvers import catalog, dataset, read_of, resolver, rule, source
from s3_gateway import BUCKET, Gateway
from weft.io.connectors import check_datasource
from weft.io.options import CsvOptions, csv_options
from weft.io.stores import open_store
from weft.pipelines.model.resolver import PathStrategy, TableStrategy
from weft.pipelines.spark import inputs
from weft.pipelines.spark.inputs import FilePrint, InputPrint, changes, fingerprint_inputs


def printed(root: Path, path: str = "in") -> InputPrint:
    by = rule("all", strategy=PathStrategy(datasource="files", path=path))
    known = catalog(resolver(by), source(), root=root, default="main")
    return fingerprint_inputs(read_of(dataset(), known).locations, known, root)


def test_files_are_identified_by_size_and_hash(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.csv").write_bytes(b"abc")
    (tmp_path / "in" / "a.csv").write_bytes(b"")
    (tmp_path / "in" / "_SUCCESS").write_bytes(b"")
    found = printed(tmp_path)
    assert found.files == (
        FilePrint(path="in/a.csv", bytes=0, sha256=hashlib.sha256(b"").hexdigest()),
        FilePrint(path="in/b.csv", bytes=3, sha256=hashlib.sha256(b"abc").hexdigest()),
    )
    assert (found.bytes, found.tables) == (3, ())
    assert InputPrint.from_dict(found.to_dict()) == found
    os.utime(tmp_path / "in" / "b.csv", (1, 1))
    assert changes(found, printed(tmp_path)) == ()
    (tmp_path / "in" / "b.csv").write_bytes(b"abd")
    (tmp_path / "in" / "c.csv").write_bytes(b"")
    (tmp_path / "in" / "a.csv").unlink()
    gone, new, changed = changes(found, printed(tmp_path))
    assert (gone, new) == ("in/a.csv is missing", "in/c.csv is new")
    assert changed.startswith("in/b.csv changed: 3 bytes, ba7816bf8f01 -> 3 bytes, ")


def test_large_files_are_identified_by_size_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "HASHED_UP_TO", 2)
    (tmp_path / "in").write_bytes(b"abc")
    os.utime(tmp_path / "in", ns=(7, 7))
    before = printed(tmp_path)
    assert before.files == (FilePrint(path="in", bytes=3, mtime_ns=7),)
    os.utime(tmp_path / "in", ns=(8, 8))
    assert changes(before, printed(tmp_path)) == ("in changed: 3 bytes, changed at 7 -> 3 bytes, changed at 8",)


def test_remote_files_are_identified_by_what_their_store_reports(
    tmp_path: Path, s3_gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in s3_gateway.environment.items():
        monkeypatch.setenv(key, value)
    store = open_store(f"s3://{BUCKET}/inputs")
    store.put("in/a.csv", b"abc")
    before = printed(tmp_path, f"s3a://{BUCKET}/inputs/in")
    assert before.tables == ()
    assert [(file.path, file.bytes) for file in before.files] == [(f"{store.root}/in/a.csv", 3)]
    assert InputPrint.from_dict(before.to_dict()) == before
    assert changes(before, printed(tmp_path, f"s3a://{BUCKET}/inputs/in")) == ()
    store.put("in/a.csv", b"abd")
    (changed,) = changes(before, printed(tmp_path, f"s3a://{BUCKET}/inputs/in"))
    assert changed.startswith(f"{store.root}/in/a.csv changed: 3 bytes, version ")


def test_tables_and_remote_paths_that_cannot_be_listed_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    by = rule("db", strategy=TableStrategy(datasource="pg", table="t", schema="s"))
    known = catalog(resolver(by), source("jdbc", "pg", url="jdbc:postgresql://h/d"), default="main")
    found = fingerprint_inputs(read_of(dataset(), known).locations, known, tmp_path)
    assert (found.files, found.tables, found.bytes) == ((), ("pg:s.t",), None)
    remote = printed(tmp_path, "s3a://lake/x")
    assert remote.tables == ("s3a://lake/x",)
    assert changes(found, remote) == ("pg:s.t is no longer read", "s3a://lake/x is newly read")
    assert printed(tmp_path, "none.csv") == InputPrint()


@pytest.mark.parametrize(
    ("type", "options", "code", "part"),
    [
        ("csv", {"delimeter": ";"}, "W1002", "did you mean 'delimiter'?"),
        ("parquet", {"delimiter": ";"}, "W1002", "options are 'path_prefix'"),
        ("csv", {"delimiter": ";;"}, "W1004", "one character"),
        ("csv", {"has_header": "yes"}, "W1004", "true or false"),
        ("csv", {"encoding": "utf-9"}, "W1004", "UTF-8"),
        ("jdbc", {}, "W1003", "jdbc:postgresql"),
        ("jdbc", {"url": "jdbc:postgresql://h/d", "fetch_size": 0}, "W1004", "10000"),
        ("delta", {"storage_options": "x"}, "W1004", "names and values"),
    ],
)
def test_options_without_effect_are_reported(type: str, options: dict[str, Any], code: str, part: str) -> None:
    (found,) = check_datasource(source(type, **options))
    assert found.code == code
    assert part in found.help


def test_sound_options_are_taken() -> None:
    datasource = source(
        "csv", path_prefix="d", delimiter=";", has_header=False, quote="'", encoding="latin-1", multiline=True
    )
    assert check_datasource(datasource) == ()
    assert csv_options(datasource) == CsvOptions(
        delimiter=";", has_header=False, encoding="latin-1", quote="'", multiline=True
    )
    assert csv_options(source("csv")) == CsvOptions()
    assert csv_options(None).multiline
    assert check_datasource(source("jdbc", connection_string="jdbc:postgresql://h/d")) == ()
