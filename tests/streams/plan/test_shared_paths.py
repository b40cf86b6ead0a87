"""Sinks that share a folder with another sink or with what the job reads are refused before anything runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from stream_spark import job_of
from weft.core.source import Source
from weft.errors import StreamPlanError
from weft.streams.run.batch import run_batch

NO_SESSION: Any = None


def stream(path: str, name: str = "orders") -> str:
    """Return the declaration of a stream of files."""
    return (
        f"CREATE STREAM {name} (id STRING, t TIMESTAMP)"
        f" WITH ('path'='{path}', 'format'='json', 'event.time.field'='t');\n"
    )


def sink(path: str, name: str = "seen", of: str = "orders") -> str:
    """Return a statement with a sink of files."""
    return f"CREATE STREAM {name} WITH ('path'='{path}', 'format'='json') AS SELECT o.id FROM {of} o;\n"  # noqa: S608  # not sent to a database


def refused(root: Path, sql: str) -> list[str]:
    """Return the codes of the findings of a job; each has a location and a next step."""
    try:
        job_of(sql, root)
    except StreamPlanError as cause:
        assert all(isinstance(d.at, Source) and d.help for d in cause.diagnostics), cause
        return [d.code for d in cause.diagnostics]
    return []


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a workspace with a folder and links to it."""
    root = tmp_path / "work"
    (root / "real" / "deep").mkdir(parents=True)
    (root / "link").symlink_to(root / "real")
    (root / "in").mkdir()
    (root / "in" / "linked").symlink_to(root / "real")
    return root


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("out", "out"),
        ("out", "./out/"),
        ("out", "a/../out"),
        ("out", "file:{root}/out"),
        ("out", "file://{root}/out"),
        ("out", "{root}/out"),
        ("real", "link"),
        ("real/new", "link/new"),
        ("out", "out/late"),
        ("out/late", "out"),
    ],
)
def test_two_sinks_in_one_folder_are_refused(root: Path, one: str, other: str) -> None:
    places = [place.replace("{root}", str(root)) for place in (one, other)]
    assert refused(root, stream("a") + sink(places[0]) + sink(places[1], "later")) == ["W2123"]


@pytest.mark.parametrize(("one", "other"), [("out/seen", "out/later"), ("out", "out2"), ("out", "outer/out")])
def test_sinks_in_folders_of_their_own_are_planned(root: Path, one: str, other: str) -> None:
    assert refused(root, stream("a") + sink(one) + sink(other, "later")) == []


READ = [
    ("in", "in"),
    ("in", "./in/"),
    ("in", "in/out"),
    ("in", "in/a/b"),
    (".", "out"),
    ("link", "real/out"),
    ("real", "link"),
    ("in/*", "in/out"),
    ("in/o*", "in/out/late"),
    ("{d}/[a-o]*", "data/out"),
    ("{d}/[^a-n]ut", "data/out"),
    ("{in,data}/*", "data/out"),
    ("{in/x,data/{out,late}}", "data/out"),
    ("in/{x,*}", "in/out"),
    ("in/*", "real/out"),
    (r"in\[1\]", "in[1]/out"),
    ("file:{root}/in", "in/out"),
    # The sink's own files are read by the pattern.
    ("out/*.json", "out"),
    ("*/part-*", "out"),
    # The input is in the folder of the sink.
    ("out/in", "out"),
    ("out/orders.json", "out"),
    ("out/in/*.json", "out"),
]


@pytest.mark.parametrize(("path", "to"), READ)
def test_a_sink_in_a_folder_that_the_job_reads_is_refused(root: Path, path: str, to: str) -> None:
    path = path.replace("{root}", str(root)).replace("{d}", "data")
    assert refused(root, stream(path) + sink(to)) == ["W2108"]


NOT_READ = [
    ("in", "out"),
    ("in", "in2"),
    ("data/orders", "data/out"),
    ("data/orders.json", "data/out"),
    ("in/*.json", "in/out"),
    ("in/[p-z]*", "in/out"),
    ("in/{a,b}", "in/out"),
    # `out/orders.json` would be read, but the sink writes no file of that name.
    ("*/orders.json", "out"),
    # Files below a name with _ or . in front are not read.
    ("in", "in/_out"),
    ("in", "in/.out/a"),
    ("s3a://bucket/in", "in"),
]


@pytest.mark.parametrize(("path", "to"), NOT_READ)
def test_a_sink_that_the_job_does_not_read_is_planned(root: Path, path: str, to: str) -> None:
    assert refused(root, stream(path) + sink(to)) == []


def test_the_sink_of_one_statement_is_not_read_by_another(root: Path) -> None:
    sql = stream("a") + stream("out", "earlier") + sink("out") + sink("late", "later", of="earlier")
    assert refused(root, sql) == ["W2108"]


def test_a_table_is_read_too_and_a_stream_that_nothing_reads_is_not(root: Path) -> None:
    table = "CREATE TABLE names (id STRING) WITH ('path'='out', 'format'='json');\n"
    joined = (
        "CREATE STREAM seen WITH ('path'='out/seen', 'format'='json') AS"
        " SELECT o.id FROM orders o JOIN names n ON o.id = n.id;\n"
    )
    assert refused(root, stream("a") + table + joined) == ["W2108"]
    assert refused(root, stream("a") + stream("out", "unread") + sink("out")) == []


def test_a_topic_that_the_job_reads_is_not_a_sink(root: Path) -> None:
    orders = "CREATE STREAM orders (id STRING) WITH ('topic'='{}', 'format'='json');\n"
    seen = "CREATE STREAM seen WITH ('topic'='a', 'format'='json'{}) AS SELECT o.id FROM orders o;\n"
    assert refused(root, orders.format("a") + seen.format("")) == ["W2108"]
    assert refused(root, orders.format("b,a") + seen.format("")) == ["W2108"]
    assert refused(root, orders.format("b, a") + seen.format("")) == ["W2108"]
    assert refused(root, orders.format("ab") + seen.format("")) == []
    assert refused(root, orders.format("a") + seen.format(", 'bootstrap.servers'='other:9092'")) == []


def test_findings_name_both_places(root: Path) -> None:
    with pytest.raises(StreamPlanError) as caught:
        job_of(stream("in") + sink("in/out"), root)
    assert "'orders' reads 'in'" in caught.value.message
    assert "'seen' writes to 'in/out'" in caught.value.message
    with pytest.raises(StreamPlanError) as caught:
        job_of(stream("a") + sink("out") + sink("out", "later"), root)
    assert "'seen'" in caught.value.message
    assert "'later'" in caught.value.message


@pytest.mark.parametrize("to", ["in", "in/out", "real/deep"])
def test_a_batch_does_not_write_to_what_it_reads(root: Path, to: str) -> None:
    plan = job_of(stream("in") + stream("link", "linked") + sink("x") + sink("y", "later", of="linked"), root)
    with pytest.raises(StreamPlanError) as caught:
        run_batch(NO_SESSION, plan, to=Path(to))
    assert caught.value.code == "W2108"
    assert [p for p in root.rglob("*") if p.is_file()] == []


def test_a_pattern_with_many_groups_is_planned_quickly(root: Path) -> None:
    assert refused(root, stream("in/" + "{a,b}" * 40) + sink("out")) == []


def test_links_that_lead_nowhere_are_planned(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "loop").symlink_to(root / "loop")
    for path, to in (("loop/a", "out"), ("a", "loop/out"), ("loop", "loop2")):
        assert refused(root, stream(path) + sink(to)) == []
    assert refused(root, stream("loop/a") + sink("loop")) == ["W2108"]
    real = os.readlink

    def forbidden(path: str) -> str:
        if str(path).endswith("linked"):
            raise PermissionError(path)
        return real(path)

    monkeypatch.setattr(os, "readlink", forbidden)
    assert refused(root, stream("in/*") + sink("real/out")) == []
