"""HdfsFiles: a folder of HDFS, by WebHDFS.  It needs neither Hadoop nor a JVM, so Python workers can use it too.

::

    put       write .weft-tmp-1234, rename it to the name and replace what is there
    create    the same, but refuse to replace: the name node decides, one request at a time

HDFS shows a file while it is written, so that neither is a single request.
"""

from __future__ import annotations

import getpass
import json
import os
import secrets
import string
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from weft.errors import FileStoreError
from weft.io.stores.address import StoreAddress
from weft.io.stores.base import (
    FileInfo,
    check_name,
    denied_error,
    describe_listing,
    existing_file_error,
    missing_file_error,
    refused_error,
    unreachable_error,
)
from weft.io.stores.settings import StoreSettings

_TEMPORARY = ".weft-tmp-"
_MISSING = "FileNotFoundException"
_EXISTS = "FileAlreadyExistsException"
_DENIED = ("AccessControlException", "SecurityException", "AuthorizationException")
# A name node that starts, or that is not the active one of a pair, answers again later.
_LATER = ("StandbyException", "SafeModeException", "RetriableException", "ObserverRetryOnActiveException")


@dataclass(frozen=True, slots=True)
class HdfsFiles:
    """A folder of HDFS."""

    address: StoreAddress
    settings: StoreSettings

    @property
    def root(self) -> str:
        """The address of the root."""
        return str(self.address)

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return self._open(name)

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """Return a part of a file."""
        if length <= 0:
            return b""
        try:
            return self._open(name, offset=start, length=length)
        except FileStoreError:
            info = self.stat(name)
            if info is None or start < info.size:
                raise
            return b""  # an offset behind the end is an error of the data node

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Write a whole file."""
        self._publish(name, data, "OVERWRITE", f"write {name!r}")

    def create(self, name: str, data: bytes | memoryview) -> None:
        """Write a whole file unless it exists."""
        if self.stat(name) is not None:
            raise existing_file_error(name, self.root)
        self._publish(name, data, "NONE", f"create {name!r}")

    def list(self, prefix: str = "") -> list[FileInfo]:
        """Return the files whose names start with a string."""
        folder = prefix.rpartition("/")[0]
        if folder:
            check_name(folder, self.root)
        found = self._walk(folder)
        return sorted((info for info in found if info.name.startswith(prefix)), key=lambda info: info.name)

    def stat(self, name: str) -> FileInfo | None:
        """Return what is known of a file."""
        try:
            answer = self._ask("GET", name, "GETFILESTATUS", f"read {name!r}")
        except FileNotFoundError:
            return None
        found = json.loads(answer)["FileStatus"]
        return _describe(name, found) if found["type"] == "FILE" else None

    def copy(self, name: str, target: str) -> None:
        """Copy a file to another name."""
        self.put(target, self.read(name))

    def delete(self, names: Iterable[str]) -> None:
        """Delete files."""
        for name in names:
            with suppress(FileNotFoundError):
                self._ask("DELETE", name, "DELETE", f"delete {name!r}")

    def open_local(self, name: str) -> memoryview | None:  # noqa: ARG002  # the same for each file
        """Return None: the files are elsewhere."""
        return None

    def _open(self, name: str, **part: int) -> bytes:
        answer = self._ask("GET", name, "OPEN", f"read {name!r}", noredirect="true", **part)
        return self._send("GET", _location(answer), f"read {name!r}", name)

    def _publish(self, name: str, data: bytes | memoryview, option: str, action: str) -> None:
        folder = check_name(name, self.root).rpartition("/")[0]
        temporary = f"{folder}/" if folder else ""
        temporary += f"{_TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}"
        try:
            self._write(temporary, data, action)
            self._rename(temporary, name, bytes(data), option, action)
        except BaseException:
            with suppress(FileStoreError):  # the first failure is the one to report
                self.delete([temporary])
            raise

    def _write(self, name: str, data: bytes | memoryview, action: str) -> None:
        # The name is nobody else's, so that a request that is repeated may overwrite what the first one wrote.
        answer = self._ask("PUT", name, "CREATE", action, overwrite="true", noredirect="true")
        self._send("PUT", _location(answer), action, name, bytes(data))

    def _rename(self, temporary: str, name: str, data: bytes, option: str, action: str) -> None:
        """Give a written file its name; `data` is its content."""
        maybe_done = False  # whether an earlier request may have succeeded although its answer was lost
        target = f"/{self._path(name)}"
        for is_last in self.settings.patience.attempts():
            try:
                self._once(
                    "PUT", self._url(temporary, "RENAME", destination=target, renameoptions=option), action, name
                )
            except FileStoreError as failure:
                if is_last or failure.code != "W1905":
                    raise
                maybe_done = True
            except (FileNotFoundError, FileExistsError):
                if maybe_done and self._content(name) == data:
                    return
                raise
            else:
                return

    def _content(self, name: str) -> bytes | None:
        try:
            return self.read(name)
        except FileNotFoundError:
            return None

    def _walk(self, folder: str) -> Iterator[FileInfo]:
        try:
            answer = self._ask("GET", folder, "LISTSTATUS", describe_listing(folder))
        except FileNotFoundError:
            return
        for found in json.loads(answer)["FileStatuses"]["FileStatus"]:
            if not found["pathSuffix"]:  # the folder is a file
                return
            name = f"{folder}/{found['pathSuffix']}" if folder else found["pathSuffix"]
            if found["type"] == "DIRECTORY":
                yield from self._walk(name)
            elif not found["pathSuffix"].startswith(_TEMPORARY):
                yield _describe(name, found)

    def _ask(self, method: str, name: str, operation: str, action: str, **options: str | int) -> bytes:
        """Send a request to the name node and return its answer."""
        if name:
            check_name(name, self.root)
        return self._send(method, self._url(name, operation, **options), action, name)

    def _send(self, method: str, url: str, action: str, name: str, data: bytes | None = None) -> bytes:
        for is_last in self.settings.patience.attempts():
            try:
                return self._once(method, url, action, name, data)
            except FileStoreError as failure:
                if is_last or failure.code != "W1905":
                    raise
        raise AssertionError  # pragma: no cover  # the last attempt returns or raises

    def _once(self, method: str, url: str, action: str, name: str, data: bytes | None = None) -> bytes:
        headers = {} if data is None else {"Content-Type": "application/octet-stream"}
        request = Request(url, data=data, method=method, headers=headers)  # noqa: S310  # http or https, see _base
        try:
            with urlopen(request, timeout=self.settings.patience.timeout) as answer:  # noqa: S310
                content: bytes = answer.read()
                return content
        except HTTPError as cause:
            raise self._failure(cause, action, name) from cause
        except (URLError, HTTPException, OSError) as cause:
            reason = getattr(cause, "reason", None) or str(cause) or type(cause).__name__
            raise unreachable_error(self.root, f"cannot {action}: {reason}") from cause

    def _failure(self, cause: HTTPError, action: str, name: str) -> Exception:
        kind, message = _read_exception(cause)
        if kind == _MISSING:
            return missing_file_error(name, self.root)
        if kind == _EXISTS:
            return existing_file_error(name, self.root)
        if kind in _DENIED or cause.code == 401:
            return denied_error(self.root, action, message)
        if kind in _LATER or cause.code in (429, 502, 503, 504):
            return unreachable_error(self.root, f"cannot {action}: {message}")
        return refused_error(self.root, action, message)

    def _url(self, name: str, operation: str, **options: str | int) -> str:
        user = self.settings.get("user") or os.environ.get("HADOOP_USER_NAME") or _user_of_process()
        query = {"op": operation, **({"user.name": user} if user else {}), **options}
        return f"{_base(self.address, self.settings)}/webhdfs/v1/{quote(self._path(name))}?{urlencode(query)}"

    def _path(self, name: str) -> str:
        return "/".join(part for part in (self.address.path, name) if part)


def _base(address: StoreAddress, settings: StoreSettings) -> str:
    """Return the address of the HTTP server of the name node."""
    given = (settings.get("webhdfs") or os.environ.get("WEFT_WEBHDFS", "")).rstrip("/")
    if given and address.scheme == "hdfs":
        return given if given.startswith(("http://", "https://")) else f"http://{given}"
    if address.scheme == "hdfs":
        raise FileStoreError(
            f"the HTTP address of the name node of {address} is not known",
            code="W1903",
            help="add the setting `webhdfs: http://namenode:9870` or set WEFT_WEBHDFS to it, or write webhdfs://namenode:9870/folder",
        )
    return f"{'https' if address.scheme == 'swebhdfs' else 'http'}://{address.container}"


def _user_of_process() -> str:
    """Return the user that Hadoop's client would send too, an empty string when the process has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may have a number alone
        return ""


def _location(answer: bytes) -> str:
    """Return the address of the data node; Java leaves letters of other alphabets in it, which HTTP does not allow."""
    return quote(json.loads(answer)["Location"], safe=string.punctuation)


def _read_exception(cause: HTTPError) -> tuple[str, str]:
    """Return the Java exception that the answer describes, and its message."""
    with suppress(ValueError, KeyError, TypeError, OSError, HTTPException):
        found: Any = json.loads(cause.read())["RemoteException"]
        return str(found["exception"]), str(found["message"]).partition("\n")[0][:400]
    return "", f"HTTP status {cause.code}"


def _describe(name: str, found: dict[str, Any]) -> FileInfo:
    # A file that is replaced has another id; one that is appended to has another time and length.
    version = f"{found['fileId']:x}-{found['modificationTime']:x}-{found['length']:x}"
    return FileInfo(name, found["length"], version, found["modificationTime"] / 1000)
