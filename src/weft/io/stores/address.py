"""StoreAddress: where the root of a store is.  An address never contains credentials.

::

    s3a://lake/gl/  ->  kind s3, container lake, path gl        printed as s3://lake/gl
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from weft.core.names import format_list
from weft.core.paths import escapes_folder, has_scheme, is_file_url
from weft.errors import FileStoreError

Kind = Literal["local", "s3", "gs", "azure", "hdfs"]

_KINDS: dict[str, Kind] = {
    "s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "abfs": "azure", "abfss": "azure", "az": "azure", "azure": "azure",
    "hdfs": "hdfs", "webhdfs": "hdfs", "swebhdfs": "hdfs",
}  # fmt: skip
_REMOTE = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<host>[^/]*)(?P<path>/.*)?$", re.DOTALL)
_AZURE_HOST = re.compile(r"(?P<container>[^@:]+)@(?P<account>[^@:.]+)\.(?:dfs|blob)\.core\.(?P<suffix>[^@:]+)")
_USER = re.compile(r"//[^/]*@")
_HELP = "write a local folder, or for example s3://bucket/folder"


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """The root of a store.

    `container` is the bucket, container or host; `path` has no slash at its ends, except that of a local folder.
    """

    kind: Kind
    scheme: str
    container: str
    path: str
    account: str = ""

    def __str__(self) -> str:
        if self.kind == "local":
            return self.path
        host = f"{self.container}@{self.account}.dfs.core.windows.net" if self.scheme == "abfss" else self.container
        return f"{self.scheme}://{host}/{self.path}".rstrip("/")


def parse_address(address: str) -> StoreAddress:
    """Return the parts of an address; raise W1901 for one that is invalid, W1902 for one with credentials.

    >>> str(parse_address("s3a://lake/gl/")), parse_address("hdfs://name:8020/gl").container
    ('s3://lake/gl', 'name:8020')
    """
    if not has_scheme(address) or is_file_url(address):
        return _local(address)
    found = _REMOTE.match(address)
    scheme = "" if found is None else found["scheme"].lower()
    if found is None or scheme not in _KINDS:
        problem = "has no host" if found is None else f"has the unknown scheme {scheme!r}"
        raise _invalid(
            _USER.sub("//", address.partition("?")[0]), problem, f"schemes are {format_list(dict.fromkeys(_KINDS))}"
        )
    kind, host, path = _KINDS[scheme], found["host"], (found["path"] or "").strip("/")
    # Printed without what may be a user or a query, so that no credential appears in a message.
    plain = f"{scheme}://{host.rpartition('@')[2]}/{path.partition('?')[0]}".rstrip("/")
    azure = _AZURE_HOST.fullmatch(host) if kind == "azure" else None
    if ("@" in host and azure is None) or "?" in path:
        raise FileStoreError(
            f"the address {plain} is written with a user, a password or a query",
            code="W1902",
            help="leave it out: credentials come from the environment, or from settings such as `secret_key: env:NAME`",
        )
    if not host:
        raise _invalid(plain, "has no bucket or host", _HELP)
    if "#" in address or escapes_folder(path) or any(part in (".", "..", "") for part in path.split("/") if path):
        raise _invalid(plain, "has '#', '.', '..' or an empty part in its path", _HELP)
    if azure is not None:
        return StoreAddress(kind, "abfss", azure["container"], path, azure["account"])
    return StoreAddress(kind, _printed_scheme(kind, scheme), host, path)


def _printed_scheme(kind: Kind, scheme: str) -> str:
    return {"s3": "s3", "azure": "az"}.get(kind, scheme)


def _local(address: str) -> StoreAddress:
    from weft.io.location import plain_path  # noqa: PLC0415  # most stores are remote; it reads datasources

    path = plain_path(address)
    if not path or "\0" in path:
        raise _invalid(address, "is empty" if not path else "contains a NUL character", _HELP)
    # Absolute from here on: a store is sent to processes that run in other folders.
    return StoreAddress("local", "file", "", os.path.abspath(Path(path).expanduser()))  # noqa: PTH100  # keeps links


def _invalid(address: str, problem: str, help: str) -> FileStoreError:
    return FileStoreError(f"the address {address!r} {problem}", code="W1901", help=help)
