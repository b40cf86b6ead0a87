"""Addresses and settings of stores: what they mean, what is refused, and that no secret is printed or sent."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from weft.errors import FileStoreError, WeftError
from weft.io.stores import hadoop_address, hadoop_conf, hadoop_defaults, open_store
from weft.io.stores.address import parse_address
from weft.io.stores.objects import ObjectFiles
from weft.io.stores.settings import read_settings

SECRET = "hunter2-and-more"  # noqa: S105


@pytest.mark.parametrize(
    ("address", "root", "hadoop"),
    [
        ("s3://lake", "s3://lake", "s3a://lake"),
        ("s3a://lake/gl/", "s3://lake/gl", "s3a://lake/gl"),
        ("gs://lake/gl", "gs://lake/gl", "gs://lake/gl"),
        ("hdfs://name:8020/gl", "hdfs://name:8020/gl", "hdfs://name:8020/gl"),
        (
            "abfss://lake@acc.dfs.core.windows.net/gl",
            "abfss://lake@acc.dfs.core.windows.net/gl",
            "abfss://lake@acc.dfs.core.windows.net/gl",
        ),
        ("/data/gl/", "/data/gl", "/data/gl"),
        ("file:///data/a%20b", "/data/a b", "/data/a b"),
    ],
)
def test_an_address_is_printed_in_one_form(address: str, root: str, hadoop: str) -> None:
    assert open_store(address).root == root
    assert hadoop_address(address) == hadoop
    assert str(parse_address(root)) == root


def test_a_relative_folder_is_that_of_the_process_that_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("out")
    monkeypatch.chdir("/")
    store.put("a", b"x")
    assert (tmp_path / "out" / "a").read_bytes() == b"x"
    assert pickle.loads(pickle.dumps(store)).read("a") == b"x"  # noqa: S301


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ftp://host/a",
        f"ftp://{SECRET}@host/a?x={SECRET}",
        "s3://",
        "s3:///a",
        "s3:/a",
        "s3://lake/../other",
        "s3://lake/a//b",
        "s3://lake/a#b",
    ],
)
def test_an_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(FileStoreError) as failure:
        open_store(address)
    assert failure.value.code == "W1901"
    assert failure.value.help
    assert SECRET not in str(failure.value)


@pytest.mark.parametrize(
    "address",
    [
        f"s3://ann:{SECRET}@lake/gl",
        f"s3://{SECRET}@lake/gl",
        f"s3a://lake/gl?secret_key={SECRET}",
        f"s3://lake/gl?X-Amz-Signature={SECRET}",
        f"hdfs://ann:{SECRET}@name:8020/gl",
        f"abfss://lake:{SECRET}@acc.dfs.core.windows.net/gl",
        f"abfss://lake@acc.dfs.core.windows.net/gl?sv=1&sig={SECRET}",
        f"gs://lake/gl?access_token={SECRET}",
    ],
)
def test_credentials_in_an_address_are_refused_and_not_printed(address: str) -> None:
    for call in (open_store, hadoop_address, hadoop_conf):
        with pytest.raises(FileStoreError) as failure:
            call(address)
        assert failure.value.code == "W1902"
        assert SECRET not in str(failure.value)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("endpont", "http://minio:9000", "did you mean 'endpoint'?"),
        ("secret_key", SECRET, "a reference to a secret"),
        ("account_key", SECRET, "a reference to a secret"),
        ("endpoint", f"http://ann:{SECRET}@minio:9000", "without credentials"),
        ("endpoint", "minio:9000", "an http:// or https:// address"),
        ("webhdfs", f"http://ann:{SECRET}@name:9870", "without credentials"),
        ("path_style", "yes", "true or false"),
        ("timeout", "0", "seconds"),
        ("timeout", "nan", "seconds"),
        ("retries", "-1", "from 0 to 100"),
    ],
)
def test_an_invalid_setting_is_refused_and_not_printed(name: str, value: str, message: str) -> None:
    with pytest.raises(FileStoreError) as failure:
        open_store("s3://lake", {name: value})
    assert failure.value.code == "W1903"
    assert message in str(failure.value)
    assert SECRET not in str(failure.value)


def test_hdfs_needs_its_http_address() -> None:
    with pytest.raises(FileStoreError) as failure:
        open_store("hdfs://name:8020/gl").read("a")
    assert failure.value.code == "W1903"
    assert "webhdfs" in failure.value.help


def test_a_secret_stays_in_its_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{SECRET}-in-a-file\n")
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    settings = {"access_key": "env:LAKE_SECRET", "secret_key": f"file:{file}", "endpoint": "http://127.0.0.1:9"}
    store = open_store("s3://lake", settings)
    assert isinstance(store, ObjectFiles)
    assert store._store.config["secret_access_key"] == f"{SECRET}-in-a-file"
    sent = pickle.dumps(store)
    assert SECRET.encode() not in sent
    assert SECRET not in f"{store!r} {store.root} {store._settings}"
    copy = pickle.loads(sent)  # noqa: S301
    monkeypatch.delenv("LAKE_SECRET")
    with pytest.raises(WeftError) as failure:
        copy.read("a")
    assert "LAKE_SECRET" in str(failure.value)


def test_spark_takes_secrets_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert hadoop_conf("s3a://lake/gl", {"endpoint": "http://minio:9000/", "secret_key": "env:LAKE_SECRET"}) == {
        "fs.s3a.bucket.lake.endpoint": "http://minio:9000",
        "fs.s3a.bucket.lake.endpoint.region": "eu-west-1",
        "fs.s3a.bucket.lake.path.style.access": "true",
        "fs.s3a.bucket.lake.connection.ssl.enabled": "false",
        "fs.s3a.bucket.lake.secret.key": "${env.LAKE_SECRET}",
        "fs.s3a.bucket.lake.attempts.maximum": "2",
        "fs.s3a.bucket.lake.retry.limit": "4",
        "fs.s3a.bucket.lake.retry.interval": "200ms",
    }
    assert hadoop_conf("s3://lake")["fs.s3a.bucket.lake.path.style.access"] == "false"
    conf = hadoop_conf("abfss://lake@acc.dfs.core.windows.net/", {"account_key": "env:LAKE_SECRET"})
    assert conf == {"fs.azure.account.key.acc.dfs.core.windows.net": "${env.LAKE_SECRET}"}
    assert hadoop_conf("hdfs://name:8020/gl") == hadoop_conf("/data/gl") == {}
    with pytest.raises(FileStoreError):
        hadoop_address("az://lake/gl")


def test_sessions_know_the_endpoint_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    alone = {"fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}
    assert hadoop_defaults() == alone
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio:9000")
    assert hadoop_defaults() == alone | {
        "fs.s3a.endpoint": "http://minio:9000",
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.attempts.maximum": "2",
        "fs.s3a.retry.limit": "4",
        "fs.s3a.retry.interval": "200ms",
    }


def test_an_endpoint_says_how_requests_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://minio:9000")
    assert not read_settings("s3", None).allows_http
    assert read_settings("s3", None).is_path_style
    assert read_settings("s3", {"endpoint": "http://other"}).allows_http
    store = open_store("s3://lake/gl", {"path_style": "false"})
    assert isinstance(store, ObjectFiles)
    assert store._store.config["endpoint"] == "https://lake.minio:9000"


def test_azure_and_google_stores_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_SECRET", "aHVudGVyMg==")
    azure = open_store("abfss://lake@acc.dfs.core.windows.net/gl", {"account_key": "env:LAKE_SECRET"})
    google = open_store("gs://lake/gl", {"anonymous": "true"})
    assert isinstance(azure, ObjectFiles)
    assert isinstance(google, ObjectFiles)
    assert "acc" in str(azure._store.config)
    assert google._store.prefix == "gl"
