"""Redrive through the command line: rejected rows become corrections, each once, and the sum is the batch result."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_line import Ran, weft
from stream_checkpoints import on_disk
from weft.streams.checkpoint.folder import find_checkpoint, move_file
from weft.streams.checkpoint.recover import read_redrives

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = 1_736_848_800_000
JOB = """
CREATE STREAM orders (id STRING, at TIMESTAMP) WITH ('path' = 'orders', 'format' = 'json',
  'event.time.field' = 'at', 'event.time.format' = 'epoch_millis', 'max.files.per.trigger' = '1');
CREATE STREAM shipments (id STRING, nr INT, at TIMESTAMP) WITH ('path' = 'shipments', 'format' = 'json',
  'event.time.field' = 'at', 'event.time.format' = 'epoch_millis', 'max.files.per.trigger' = '1');
CREATE STREAM shipped WITH ('path' = 'out', 'format' = '{form}')
  AS SELECT o.id, s.nr, s.at, '' AS note FROM orders o LEFT JOIN shipments s ON o.id = s.id WITHIN ('0s', '10s')
  WITH ({options});
SET 'groups' = '2'
"""
TIMELESS = """
CREATE STREAM orders (id STRING, at TIMESTAMP) WITH ('path' = 'orders', 'format' = 'json',
  'event.time.field' = 'at', 'event.time.format' = 'epoch_millis');
CREATE STREAM shipments (id STRING, seen TIMESTAMP, at TIMESTAMP) WITH ('path' = 'shipments', 'format' = 'json',
  'event.time.field' = 'at', 'event.time.format' = 'epoch_millis');
CREATE STREAM shipped WITH ('path' = 'out', 'format' = 'json')
  AS SELECT o.id, s.seen FROM orders o JOIN shipments s ON o.id = s.id WITHIN ('0s', '10s');
SET 'groups' = '2'
"""
ORDERS: tuple[list[Any], ...] = ([("a", 0), ("b", 0), ("c", 0), ("d", 1)], [("z", 100)], [("y", 200)])
# The second file moves the watermark far past everything; the third brings rows of the beginning.
SHIPMENTS: tuple[list[Any], ...] = (
    [("a", 1, 2)],
    [("z", 2, 101)],
    [("a", 3, 3), ("b", 4, 5), ("nobody", 5, 5), ("y", 6, 201)],
)


def write(root: Path, name: str, number: int, rows: list[Any]) -> None:
    folder = root / name
    folder.mkdir(exist_ok=True)
    lines = []
    for row in rows:
        given = {"id": row[0], "at": START + 1000 * row[-1]}
        lines.append(json.dumps(given if len(row) == 2 else given | {"nr": row[1]}))
    file = folder / f"{number}.json"
    file.write_text("\n".join(lines))
    os.utime(file, (number + 1, number + 1))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, files in (("orders", ORDERS), ("shipments", SHIPMENTS)):
        for number, rows in enumerate(files):
            write(tmp_path, name, number, rows)
    return tmp_path


def job(root: Path, form: str = "json", options: str = "'join.retention' = '1h'") -> None:
    (root / "job.sql").write_text(JOB.format(form=form, options=options))


def run(root: Path, spark: SparkSession, *words: str) -> Ran:
    ran = weft("stream", *words, "--json", root=root, spark=spark)
    assert ran.code == 0, ran.out
    return ran


def rows(spark: SparkSession, folder: Path, form: str = "json") -> Counter[tuple[Any, ...]]:
    """Return rows (op, id, nr, note), the op empty in the sink itself."""
    if not folder.exists():
        return Counter()
    schema = "id string, nr int, at string, note string"
    marked = folder.suffix == ".corrections"
    reader = spark.read.format(form)
    if form != "parquet":
        reader = reader.schema(f"_op string, {schema}" if marked else schema)
    if form == "csv":
        reader = reader.options(header="true", emptyValue="(empty)", escape='"')
    frame = reader.load(str(folder))
    return Counter((row._op if marked else "", row.id, row.nr, row.note) for row in frame.collect())


def corrected(spark: SparkSession, root: Path, form: str = "json") -> Counter[tuple[Any, ...]]:
    """Return the rows of the sink with its corrections."""
    found = Counter({row[1:]: n for row, n in rows(spark, root / "out", form).items()})
    for (op, *row), n in rows(spark, root / "out.corrections", form).items():
        found[tuple(row)] += n if op == "+I" else -n
    return +found


def test_late_rows_become_corrections_before_and_after_the_end(spark: SparkSession, root: Path) -> None:
    job(root)
    first = run(root, spark, "run", "job.sql", "--available").data["queries"][0]
    assert first["ledger"]["right"]["late"] == 3
    dry = run(root, spark, "redrive", "job.sql", "--dry-run").data
    assert dry["redriven"][0] | {"location": ""} == {
        "sink": "shipped", "taken": 2, "plus": 2, "minus": 1, "undecided": 1, "location": "",
    }  # fmt: skip
    assert not (root / "out.corrections").exists()
    run(root, spark, "redrive", "job.sql", "shipped")
    # The pair of a is new beside its first one; b was padded before and is now removed.
    wanted = {("+I", "a", 3, ""): 1, ("+I", "b", 4, ""): 1, ("-D", "b", None, ""): 1}
    assert rows(spark, root / "out.corrections") == wanted
    # A crash came before the files were renamed: the next redrive does that, and gives nothing again.
    checkpoint = find_checkpoint(root / ".weft" / "streams" / "job" / "shipped")
    assert checkpoint is not None
    (record,) = read_redrives(checkpoint)
    for move in record.files:
        move.source.parent.mkdir(parents=True, exist_ok=True)
        move_file(move.to, move.source)
    again = run(root, spark, "redrive", "job.sql").data["redriven"][0]
    assert rows(spark, root / "out.corrections") == wanted
    assert (again["taken"], again["plus"], again["minus"], again["undecided"]) == (0, 0, 0, 1)
    run(root, spark, "run", "job.sql", "--final")
    # Corrections that cannot be read would come again.
    gone = record.files[0].to
    on_disk(gone).rename(root / "gone")
    refused = weft("stream", "redrive", "job.sql", "--json", root=root, spark=spark)
    assert (refused.code, refused.codes) == (1, ["W2216"])
    assert str(gone) in refused.document["diagnostics"][0]["message"]
    (root / "gone").rename(on_disk(gone))
    whole = run(root, spark, "redrive", "job.sql").data["redriven"][0]
    # What was corrected before is not corrected twice.
    assert (whole["taken"], whole["plus"], whole["minus"], whole["undecided"]) == (1, 0, 0, 0)
    run(root, spark, "run", "job.sql", "--batch", "--to", "batch")
    assert corrected(spark, root) == Counter({r[1:]: n for r, n in rows(spark, root / "batch").items()})
    nothing = weft("stream", "redrive", "job.sql", "--json", root=root, spark=spark)
    assert (nothing.code, nothing.codes) == (1, ["W2216"])
    (root / "job.sql").write_text((root / "job.sql").read_text().replace("'10s')", "'20s')"))
    other = weft("stream", "redrive", "job.sql", "--json", root=root, spark=spark)
    assert (other.code, other.codes) == (8, ["W2203"])


def test_pairs_that_evicted_rows_gave_do_not_come_again(spark: SparkSession, root: Path) -> None:
    job(root, options="'join.retention' = '1h', 'join.max_state_rows' = '1'")
    (root / "job.sql").write_text((root / "job.sql").read_text().replace("'groups' = '2'", "'groups' = '1'"))
    first = run(root, spark, "run", "job.sql", "--available").data["queries"][0]
    assert first["ledger"]["left"]["evicted"] == 3  # b, c and d; a was evicted too, after it had matched
    run(root, spark, "redrive", "job.sql", "--reason", "EVICTED")
    run(root, spark, "run", "job.sql", "--batch", "--to", "batch")
    wanted = Counter({r[1:]: n for r, n in rows(spark, root / "batch").items()})
    assert corrected(spark, root) - wanted == Counter()
    assert corrected(spark, root)["a", 1, ""] == 1


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_after_the_end_the_corrections_are_the_whole_difference(spark: SparkSession, root: Path, form: str) -> None:
    job(root, form, "'join.max_state_rows' = '2'")
    done = run(root, spark, "run", "job.sql", "--final").data["queries"][0]
    assert done["ledger"]["left"]["evicted"] == 2
    run(root, spark, "redrive", "job.sql")
    run(root, spark, "run", "job.sql", "--batch", "--to", "batch")
    assert corrected(spark, root, form) == Counter({r[1:]: n for r, n in rows(spark, root / "batch", form).items()})


def test_rows_without_a_time_are_taken_with_that_of_another_column(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "job.sql").write_text(TIMELESS)
    write(tmp_path, "orders", 0, [("a", 0), ("b", 0), ("z", 100)])
    lines = [{"id": "a", "seen": "2025-01-14T10:00:05Z"}, {"id": "b", "seen": "2025-01-14T10:00:50Z"}]
    (tmp_path / "shipments").mkdir()
    (tmp_path / "shipments" / "0.json").write_text("\n".join(map(json.dumps, lines)))
    run(tmp_path, spark, "run", "job.sql")
    words = ("redrive", "job.sql", "--reason", "no_event_time", "--time", "seen")
    done = run(tmp_path, spark, *words).data["redriven"][0]
    assert (done["taken"], done["plus"], done["minus"], done["undecided"]) == (1, 1, 0, 1)
    corrections = tmp_path / "out.corrections"
    assert [row.id for row in spark.read.json(str(corrections)).collect()] == ["a"]
    run(tmp_path, spark, "run", "job.sql", "--final", "--fresh")
    assert not list(corrections.glob("part-*"))
    whole = run(tmp_path, spark, *words).data["redriven"][0]
    assert (whole["taken"], whole["plus"], whole["minus"], whole["undecided"]) == (2, 1, 0, 0)
    assert [row.id for row in spark.read.json(str(corrections)).collect()] == ["a"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--reason", "LAT"), "LATE"),
        (("--reason", "MALFORMED"), "use one of"),
        (("--reason", "NO_EVENT_TIME"), "--time"),
        (("--time", "at"), "--reason"),
    ],
)
def test_what_cannot_be_redriven_is_refused(spark: SparkSession, root: Path, words: tuple[str, ...], says: str) -> None:
    job(root)
    ran = weft("stream", "redrive", "job.sql", *words, "--json", root=root, spark=spark)
    assert (ran.code, ran.codes) == (1, ["W2216"])
    assert says in ran.document["diagnostics"][0]["help"]
