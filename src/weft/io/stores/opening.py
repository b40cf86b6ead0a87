"""open_store: the store of an address, on this process's own connections."""

from __future__ import annotations

from collections.abc import Mapping

from weft.io.stores.address import parse_address
from weft.io.stores.base import FileStore
from weft.io.stores.local import LocalFiles
from weft.io.stores.settings import read_settings


def open_store(address: str, settings: Mapping[str, str] | None = None) -> FileStore:
    """Return the store of an address.  Nothing is read or created until a method is called.

    Parameters
    ----------
    address
        The folder that is the root of the store: a local path, ``s3://bucket/folder`` or the address of another store.
    settings
        How to reach it, for example ``{"endpoint": "http://minio:9000", "secret_key": "env:LAKE_SECRET"}``.  What is
        not set comes from the usual environment variables, such as ``AWS_ACCESS_KEY_ID``.

    >>> open_store("/data/gl").root
    '/data/gl'
    """
    place = parse_address(address)
    checked = read_settings(place.kind, settings)
    if place.kind == "local":
        return LocalFiles(place.path)
    if place.kind == "hdfs":
        from weft.io.stores.hdfs import HdfsFiles  # noqa: PLC0415  # urllib and ssl, for those who need them

        return HdfsFiles(place, checked)
    from weft.io.stores.objects import ObjectFiles  # noqa: PLC0415  # only its users have obstore

    return ObjectFiles(place, checked)
