"""Kill -9 of real Spark processes: whatever is hit and whenever, restarts end with the rows of a join by hand.

A build kills ten times; ``--kills 100`` does so a hundred times, ``--kill-seed`` chooses other moments.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_broker import problem, running_broker
from killed_streams import Job, Kill, Report, Row, kill_jobs, rows_of_files, rows_of_json
from needed import stop_without
from weft.streams.spark.kafka import ROW_ID

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = {
    "json": Kill(victim="jvm", batch=2, seconds=0.2),
    "csv": Kill(victim="python", point="stream_kernel:2"),
    "parquet": Kill(victim="group", point="stream_manifest:2"),
    "kafka": Kill(victim="group", point="stream_counted:2"),
}
"""The first kill for each sink: whatever the seed, a build kills each kind of victim."""

FORMS = ("json", "csv", "parquet")


def share(kills: int, number: int) -> int:
    """Return how many of all kills one of four sinks has.

    >>> [share(10, n) for n in range(4)], share(1, 3)
    ([3, 3, 2, 2], 1)
    """
    return max(1, kills // 4 + (number < kills % 4))


@pytest.mark.slow
@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize("form", FORMS)
def test_no_row_is_lost_or_doubled_in_files(form: str, kills: int, kill_seed: int, tmp_path: Path) -> None:
    chance = random.Random(f"{kill_seed} {form}")
    sink = f"'path' = 'out', 'format' = '{form}'"
    number = share(kills, FORMS.index(form))
    report = kill_jobs(tmp_path, sink, number, chance, rows_of_files, first=FIRST[form])
    print(f"\n{form}: {report}")  # noqa: T201


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """Return the address of a broker; where there is none to start the test is skipped, which in CI is a failure."""
    why = problem()
    if why is not None:
        stop_without(why)
    with running_broker() as address:
        yield address


@pytest.mark.slow
@pytest.mark.kafka
def test_no_row_is_lost_in_a_topic_and_one_that_is_repeated_has_the_id_it_had(
    spark: SparkSession, broker: str, kills: int, kill_seed: int, tmp_path: Path
) -> None:
    chance = random.Random(f"{kill_seed} kafka")
    sink = f"'connector' = 'kafka', 'topic' = 'killed-{{job}}', 'bootstrap.servers' = '{broker}', 'format' = 'json'"

    def rows(job: Job, report: Report) -> Counter[Row]:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker)
        frame = reader.option("subscribe", f"killed-{job.root.name}").option("includeHeaders", "true").load()
        by_id: dict[str, str] = {}
        for message in frame.selectExpr("string(value) AS value", "headers").collect():
            (name,) = (bytes(h.value).decode() for h in message.headers if h.key == ROW_ID)
            report.repeated += name in by_id
            assert json.loads(by_id.setdefault(name, message.value)) == json.loads(message.value)
        return Counter(rows_of_json(by_id.values()))

    report = kill_jobs(tmp_path, sink, share(kills, len(FORMS)), chance, rows, first=FIRST["kafka"])
    print(f"\nkafka: {report}")  # noqa: T201
