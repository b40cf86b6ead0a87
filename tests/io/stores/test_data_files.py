"""The files that a remote path means, and what identifies them."""

from __future__ import annotations

import pytest

from s3_gateway import BUCKET, Gateway
from weft.io.stores import find_stored_files, open_store

FILES = (
    "gl/2026-01/a.csv", "gl/2026-01/b.csv", "gl/2026-01/_SUCCESS", "gl/2026-02/a.csv", "gl/2026-02/.crc/a.csv", "gl/2026-03.csv",
    "gl/_period=2026-01/part-0", "gl/_delta_log/0.json", "glx/a.csv",
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("gl/2026-01", ["gl/2026-01/a.csv", "gl/2026-01/b.csv"]),
        ("gl/2026-01/", ["gl/2026-01/a.csv", "gl/2026-01/b.csv"]),
        ("gl/2026-01/a.csv", ["gl/2026-01/a.csv"]),
        ("gl/2026-01/_SUCCESS", ["gl/2026-01/_SUCCESS"]),
        ("gl/2026-*/a.csv", ["gl/2026-01/a.csv", "gl/2026-02/a.csv"]),
        ("gl/2026-0?/{a,c}.*", ["gl/2026-01/a.csv", "gl/2026-02/a.csv"]),
        ("gl/2026-0[2-3]*", ["gl/2026-02/a.csv", "gl/2026-03.csv"]),
        ("gl/2026-0[!1]", ["gl/2026-02/a.csv"]),
        ("g*/a.csv", ["glx/a.csv"]),
        ("gl/*/*.json", []),
        ("gl/_delta_log/*", ["gl/_delta_log/0.json"]),
        ("gl/*=*", ["gl/_period=2026-01/part-0"]),
        ("gl/2026.01", []),
        ("none", []),
    ],
)
def test_a_path_means_the_files_that_spark_reads(
    s3_gateway: Gateway, monkeypatch: pytest.MonkeyPatch, path: str, names: list[str]
) -> None:
    for key, value in s3_gateway.environment.items():
        monkeypatch.setenv(key, value)
    root = f"s3://{BUCKET}/found"
    store = open_store(root)
    for name in FILES if store.stat(FILES[-1]) is None else ():
        store.put(name, name.encode())
    assert [info.name for info in find_stored_files(f"s3a://{BUCKET}/found/{path}")] == [f"{root}/{n}" for n in names]


def test_a_file_that_is_replaced_has_another_version(s3_gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in s3_gateway.environment.items():
        monkeypatch.setenv(key, value)
    store = open_store(f"s3://{BUCKET}/versions")
    store.put("a.csv", b"1")
    (before,) = find_stored_files(store.root)
    assert (before,) == find_stored_files(store.root)
    store.put("a.csv", b"2")
    (after,) = find_stored_files(store.root)
    assert (before.name, before.size) == (after.name, after.size) == (f"{store.root}/a.csv", 1)
    assert before.version != after.version
