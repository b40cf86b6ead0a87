"""Jobs that have no batch form say so before anything is read or written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stream_spark import job_of
from weft.errors import StreamError, StreamPlanError
from weft.streams.checkpoint.folder import JobRecord, activate, create_checkpoint
from weft.streams.checkpoint.manifest import Manifest, Move, write_manifest
from weft.streams.run.batch import run_batch

NO_SESSION: Any = None
ORDERS = "CREATE STREAM orders (id STRING, t TIMESTAMP) WITH ('path'='in', 'format'='json', 'event.time.field'='t');"
SEEN = "CREATE STREAM seen WITH ('path'='out', 'format'='json') AS SELECT o.id FROM orders o"
TICKS = (
    "CREATE STREAM ticks (timestamp TIMESTAMP, value BIGINT) WITH ('connector'='rate', 'event.time.field'='timestamp');"
)
TOPIC = "CREATE STREAM seen WITH ('topic'='seen', 'format'='json') AS SELECT o.id FROM orders o"
FILES = "CREATE STREAM seen WITH ('path'='out', 'format'='json') AS SELECT t.value FROM ticks t"


@pytest.mark.parametrize(
    ("sql", "message", "help"),
    [
        (ORDERS + TOPIC, "the sink 'seen' is a topic", "--to FOLDER"),
        (TICKS + FILES, "stream 'ticks' has the connector 'rate'", "`weft stream run JOB --available`"),
    ],
    ids=["a topic as sink", "a rate as stream"],
)
def test_what_has_no_batch_form_is_refused(tmp_path: Path, sql: str, message: str, help: str) -> None:
    with pytest.raises(StreamPlanError) as caught:
        run_batch(NO_SESSION, job_of(sql, tmp_path))
    assert caught.value.code == "W2122"
    assert caught.value.message.startswith(message)
    assert help in caught.value.help
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


@pytest.mark.parametrize("which", [0, 1])
def test_a_batch_is_not_written_beside_the_rows_of_any_checkpoint(tmp_path: Path, which: int) -> None:
    plan = job_of(ORDERS + SEEN, tmp_path)
    made = [create_checkpoint(tmp_path / ".weft" / "streams" / "job" / "seen", JobRecord(groups=1)) for _ in range(2)]
    activate(made[1])
    rows = tmp_path / "out" / "part-0.json"
    rows.parent.mkdir()
    rows.write_text("{}")
    write_manifest(made[which], Manifest(batch=0, sink=(Move(source=tmp_path / "gone", to=rows),)))
    with pytest.raises(StreamError, match="holds rows of the stream 'seen'") as caught:
        run_batch(NO_SESSION, plan)
    assert caught.value.code == "W2215"
