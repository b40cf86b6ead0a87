"""Spark and Weft on the same stores: what one writes, the other reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from hdfs_cluster import Hdfs
from needed import stop_without
from s3_gateway import BUCKET, PASSWORD, USER, Gateway
from weft.io.spark.failures import data_failure
from weft.io.spark.session import jars_folder
from weft.io.stores import hadoop_address, hadoop_conf, open_store


@pytest.fixture(params=["s3", "hdfs"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """Return the address of an empty folder, and the settings of its store."""
    if request.param == "hdfs":
        cluster: Hdfs = request.getfixturevalue("hdfs")
        return f"{cluster.address}/spark", cluster.settings
    if not (jars_folder() / "s3").is_dir():
        stop_without("Hadoop's client for S3 is not installed: weft connectors install s3")
    gateway: Gateway = request.getfixturevalue("s3_gateway")
    # The JVM may have been started before the gateway: what it knows of it comes from files.
    for name, secret in (("user", USER), ("password", PASSWORD)):
        (tmp_path / name).write_text(secret)
    secrets = {"access_key": f"file:{tmp_path}/user", "secret_key": f"file:{tmp_path}/password"}
    return f"s3://{BUCKET}/spark", {"endpoint": gateway.endpoint, **secrets}


def test_spark_and_weft_read_what_the_other_wrote(spark: Any, place: tuple[str, dict[str, str]]) -> None:
    address, settings = place
    store, conf = open_store(address, settings), hadoop_conf(address, settings)
    spark.range(5).coalesce(1).write.options(**conf).mode("overwrite").parquet(f"{hadoop_address(address)}/numbers")
    parts = [info for info in store.list("numbers/") if info.name.endswith(".parquet")]
    assert len(parts) == 1
    content = store.read(parts[0].name)
    assert parquet.read_table(pa.BufferReader(content))["id"].to_pylist() == list(range(5))
    store.put("copies/a b.parquet", content)
    copied = spark.read.options(**conf).parquet(f"{hadoop_address(address)}/copies")
    assert sorted(row.id for row in copied.collect()) == list(range(5))


def test_workers_open_stores_of_their_own(spark: Any, place: tuple[str, dict[str, str]]) -> None:
    store = open_store(*place)
    store.put("workers/driver", b"x")  # the driver has connections, which no worker may inherit

    def write(part: int) -> tuple[int, bool]:
        store.put(f"workers/{part}", b"%d" % part)
        try:
            store.create("workers/first", b"%d" % part)
        except FileExistsError:
            return part, False
        return part, True

    done = spark.sparkContext.parallelize(range(4), 4).map(write).collect()
    assert sorted(part for part, _ in done) == list(range(4))
    (winner,) = [part for part, is_first in done if is_first]
    assert store.read("workers/first") == b"%d" % winner
    assert [info.name for info in store.list("workers/")] == [f"workers/{n}" for n in (*range(4), "driver", "first")]


def test_failures_of_stores_have_codes(
    spark: Any, s3_gateway: Gateway, place: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    address, settings = place
    if address.startswith("hdfs://"):
        cases = [("gs://lake/x", settings, "W1904"), ("hdfs://127.0.0.1:9/x", settings, "W1905")]
    else:
        (tmp_path / "wrong").write_text("hunter2")
        s3_gateway.create_bucket("denied")
        wrong = settings | {"secret_key": f"file:{tmp_path}/wrong"}
        cases = [("s3://nowhere/x", settings, "W1907"), ("s3://denied/x", wrong, "W1906")]
    for path, given, code in cases:
        # One attempt: Hadoop repeats requests for minutes.
        conf = hadoop_conf(path, given) | {"ipc.client.connect.max.retries": "0"}
        with pytest.raises(Exception, match=r".") as failure:
            spark.read.options(**conf).parquet(hadoop_address(path))
        known = data_failure(failure.value)
        assert known is not None, failure.value
        assert known.code == code
        assert "hunter2" not in str(known)


def test_a_server_of_s3_that_is_down_is_reported_without_the_dump_of_its_client() -> None:
    text = (
        "java.net.ConnectException: getFileStatus on s3://lake/x: software.amazon.awssdk.core.exception.SdkClientException: "
        "Unable to execute HTTP request: Connect to 127.0.0.1:9 [/127.0.0.1] failed: Connection refused (SDK Attempt Count: 3): x"
    )
    known = data_failure(RuntimeError(text))
    assert known is not None
    assert known.code == "W1905"
    assert known.message.endswith("Connect to 127.0.0.1:9 [/127.0.0.1] failed: Connection refused")


def test_hadoop_takes_a_secret_from_the_environment_when_it_reads_the_setting(spark: Any) -> None:
    (name,) = hadoop_conf("s3://lake", {"secret_key": "env:HOME"}).keys() - hadoop_conf("s3://lake").keys()
    conf = spark.sparkContext._jvm.org.apache.hadoop.conf.Configuration()
    conf.set(name, hadoop_conf("s3://lake", {"secret_key": "env:HOME"})[name])
    assert conf.get(name) == os.environ["HOME"]
    assert os.environ["HOME"] not in conf.getRaw(name)
