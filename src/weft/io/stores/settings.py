"""StoreSettings: how a store is reached.  Secrets are references, read when a connection is opened.

::

    endpoint: http://minio:9000          secret_key: env:LAKE_SECRET          credentials: file:/run/secrets/gcs.json
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from weft.core.names import suggest
from weft.errors import FileStoreError
from weft.io.datasource import read_secret
from weft.io.stores.address import Kind
from weft.io.stores.base import Patience

_COMMON = ("timeout", "retries")
SECRETS = ("access_key", "secret_key", "session_token", "account_key", "sas_token", "credentials")
"""Settings whose value is a reference to a secret: ``env:NAME`` or ``file:path``."""
_NAMES: Mapping[Kind, tuple[str, ...]] = {
    "local": (),
    "s3": ("endpoint", "region", "path_style", "allow_http", "anonymous", "access_key", "secret_key", "session_token"),
    "gs": ("anonymous", "credentials"),
    "azure": ("account", "endpoint", "allow_http", "anonymous", "account_key", "sas_token"),
    "hdfs": ("webhdfs", "user"),
}
_ALL = tuple(dict.fromkeys(name for names in _NAMES.values() for name in names)) + _COMMON
_FLAGS = ("path_style", "allow_http", "anonymous")
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The checked settings of a store of one kind."""

    kind: Kind
    values: tuple[tuple[str, str], ...] = ()

    def get(self, name: str, default: str = "") -> str:
        """Return the value of a setting, or a default."""
        return dict(self.values).get(name, default)

    def has(self, name: str) -> bool:
        """Whether a setting is given."""
        return name in dict(self.values)

    def is_on(self, name: str, *, default: bool = False) -> bool:
        """Return a setting that is true or false."""
        return self.get(name, str(default)).lower() == "true"

    def secret(self, name: str) -> str:
        """Return the secret that a setting refers to, an empty string without the setting."""
        reference = self.get(name)
        return read_secret(reference, Path(), f"the setting {name!r} of a file store") if reference else ""

    @property
    def patience(self) -> Patience:
        """How often and how long requests are tried."""
        return Patience(float(self.get("timeout", "30")), int(self.get("retries", "4")))

    @property
    def endpoint(self) -> str:
        """The address of a store that is not the one of the provider; for S3 also from the environment."""
        names = _ENDPOINTS if self.kind == "s3" else ()
        return (self.get("endpoint") or _first_variable(names)).rstrip("/")

    @property
    def region(self) -> str:
        """The region of S3; stores of others mostly ignore it."""
        return self.get("region") or _first_variable(_REGIONS) or "us-east-1"

    @property
    def is_from_environment(self) -> bool:
        """Whether the environment says where S3 is."""
        return bool(_first_variable((*_ENDPOINTS, *_REGIONS)))

    @property
    def allows_http(self) -> bool:
        """Whether requests may be sent without encryption: the endpoint says so by ``http://``."""
        return self.is_on("allow_http") or self.endpoint.startswith("http://")

    @property
    def is_path_style(self) -> bool:
        """Whether the bucket is part of the path instead of the host; true for any endpoint, as compatible stores need."""
        return self.is_on("path_style", default=bool(self.endpoint))


def read_settings(kind: Kind, given: Mapping[str, str] | None) -> StoreSettings:
    """Return checked settings; raise W1903 for one that is unknown or invalid.

    Settings of other kinds of stores are ignored, so that one set of settings can serve several addresses.
    """
    values = {name: _text(value) for name, value in (given or {}).items() if value not in (None, "")}
    for name, value in values.items():
        if name not in _ALL:
            known = (*_NAMES[kind], *_COMMON)
            raise _invalid(f"file stores have no setting {name!r}", suggest(name, known, "settings are", most=1))
        problem = _value_problem(name, value)
        if problem is not None:
            # The value is not printed: it may be the secret itself.
            raise _invalid(f"the setting {name!r} of a file store must be {problem[0]}", problem[1])
    return StoreSettings(kind, tuple(sorted(values.items())))


def _value_problem(name: str, value: str) -> tuple[str, str] | None:
    if name in SECRETS and not value.startswith(("env:", "file:")):
        return "a reference to a secret", "write `env:NAME` for an environment variable, or `file:path`"
    if name in _FLAGS and value.lower() not in ("true", "false"):
        return "true or false", "write true or false"
    if name == "endpoint" and (not value.startswith(("http://", "https://")) or "@" in value or "?" in value):
        return "an http:// or https:// address without credentials", "write for example https://minio.example:9000"
    if name == "webhdfs" and ("@" in value or "?" in value):
        return "an address without credentials", "write for example http://namenode:9870"
    if name == "timeout" and not _is_number(value):
        return "a number of seconds above 0", "write for example 30"
    if name == "retries" and not (value.isdecimal() and int(value) <= 100):
        return "a number from 0 to 100", "write for example 4"
    return None


def _is_number(value: str) -> bool:
    try:
        return 0 < float(value) <= 3600
    except ValueError:
        return False


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _first_variable(names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := os.environ.get(name))), "")


def _invalid(message: str, help: str) -> FileStoreError:
    return FileStoreError(message, code="W1903", help=help)
