"""The same store for Spark: the address and the settings that Hadoop's client needs.

::

    s3://lake/gl, endpoint http://minio:9000     fs.s3a.bucket.lake.endpoint = http://minio:9000
                  secret_key: env:LAKE_SECRET    fs.s3a.bucket.lake.secret.key = ${env.LAKE_SECRET}

Settings are those of one bucket, so that a session can use several stores.  Hadoop replaces ``${env.NAME}`` when it
reads a setting, so that no secret appears in the settings of Spark or in its UI.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.errors import FileStoreError
from weft.io.stores.address import StoreAddress, parse_address
from weft.io.stores.settings import StoreSettings, read_settings

_S3_SECRETS = {"access_key": "access.key", "secret_key": "secret.key", "session_token": "session.token"}


def hadoop_address(address: str) -> str:
    """Return the address under which Spark's Hadoop client knows a store.

    >>> hadoop_address("s3://lake/gl")
    's3a://lake/gl'
    """
    place = parse_address(address)
    if place.kind == "s3":
        return f"s3a://{place.container}/{place.path}".rstrip("/")
    if place.kind == "azure" and place.scheme == "az":
        raise FileStoreError(
            f"Spark needs the account in the address {place}",
            code="W1901",
            help=f"write abfss://{place.container}@ACCOUNT.dfs.core.windows.net/{place.path}",
        )
    return str(place)


def hadoop_conf(address: str, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the Hadoop settings of a store; in a Spark session each has the prefix ``spark.hadoop.``.

    >>> hadoop_conf("s3://lake/gl", {"endpoint": "http://minio:9000", "secret_key": "env:LAKE_SECRET"})[
    ...     "fs.s3a.bucket.lake.secret.key"
    ... ]
    '${env.LAKE_SECRET}'
    """
    place = parse_address(address)
    checked = read_settings(place.kind, settings)
    if place.kind == "s3":
        return _s3(place, checked)
    if place.kind == "azure" and checked.has("account_key"):
        host = f"{place.account or checked.get('account')}.dfs.core.windows.net"
        return {f"fs.azure.account.key.{host}": _reference(checked, "account_key")}
    return {}


def hadoop_defaults() -> dict[str, str]:
    """Return the Hadoop settings that follow from the environment, for every bucket of S3 without settings of its own.

    Hadoop takes credentials from the environment itself, but neither the endpoint nor the region.
    """
    settings = read_settings("s3", None)
    values = (
        {f"fs.s3a.{name}": value for name, value in _s3_values(settings).items()}
        if settings.is_from_environment
        else {}
    )
    return {"fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem", **values}


def _s3(place: StoreAddress, settings: StoreSettings) -> dict[str, str]:
    values = _s3_values(settings)
    for setting, name in _S3_SECRETS.items():
        if settings.has(setting):
            values[name] = _reference(settings, setting)
    if settings.is_on("anonymous"):
        values["aws.credentials.provider"] = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    return {f"fs.s3a.bucket.{place.container}.{name}": value for name, value in values.items()}


def _s3_values(settings: StoreSettings) -> dict[str, str]:
    """Return how S3 is reached, without secrets."""
    values = {
        "endpoint.region": settings.region,
        "path.style.access": str(settings.is_path_style).lower(),
        # By default Hadoop repeats requests to a server that is down for minutes.
        "attempts.maximum": "2",
        "retry.limit": str(settings.patience.retries),
        "retry.interval": "200ms",
    }
    if settings.endpoint:
        values["endpoint"] = settings.endpoint
        values["connection.ssl.enabled"] = str(not settings.endpoint.startswith("http://")).lower()
    return values


def _reference(settings: StoreSettings, name: str) -> str:
    kind, _, variable = settings.get(name).partition(":")
    # Hadoop reads variables itself, but no files: their content is passed on, and Spark hides settings of these names.
    return f"${{env.{variable}}}" if kind == "env" else settings.secret(name)
