"""ObjectFiles: a folder of a bucket of S3, Google Cloud Storage or Azure, by the library obstore.

Every request of obstore is repeated by obstore itself, except `create`: if the answer to the first request is lost,
the second one finds a file, and only the one who counts the requests knows that it may be his own.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from weft.errors import FileStoreError
from weft.io.stores.address import StoreAddress
from weft.io.stores.base import (
    FileInfo,
    Patience,
    check_name,
    denied_error,
    describe_listing,
    existing_file_error,
    missing_file_error,
    refused_error,
    unreachable_error,
)
from weft.io.stores.settings import StoreSettings

_CHUNK = 1_000
_CONNECT_SECONDS = 10.0
_LONGEST_TRANSFER = 20
"""How many times longer than `timeout` a request may take whose answer keeps arriving."""
_DENIED = (401, 403)
_BUSY = (408, 409, 425, 429)
_STATUS = re.compile(r"status code: (\d{3})\b")
_NO_BUCKET = re.compile(r"<Code>(?:NoSuchBucket|ContainerNotFound)</Code>")
_ANSWER = re.compile(r"<Code>([^<]{1,200})</Code>\s*<Message>([^<]{1,400})</Message>")


class _Threads:
    """Whether this process has the threads of obstore; a forked process has none of them, and its requests would wait forever."""

    started = False
    lost = False

    @classmethod
    def lose(cls) -> None:
        cls.lost = cls.started


os.register_at_fork(after_in_child=_Threads.lose)


class ObjectFiles:
    """A folder of a bucket or container."""

    def __init__(self, address: StoreAddress, settings: StoreSettings) -> None:
        self._address, self._settings = address, settings
        self._connections: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"ObjectFiles({self.root!r})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[StoreAddress, StoreSettings]]:
        # Connections stay in their process; secrets are read again where the store arrives.
        return type(self), (self._address, self._settings)

    @property
    def root(self) -> str:
        """The address of the root."""
        return str(self._address)

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        with self._translated(f"read {name!r}", name):
            return bytes(_obstore().get(self._store, check_name(name, self.root)).bytes())

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """Return a part of a file."""
        obstore, key = _obstore(), check_name(name, self.root)
        with self._translated(f"read {name!r}", name):
            if length <= 0:  # a request for no bytes is invalid
                return b""
            try:
                return bytes(obstore.get_range(self._store, key, start=start, length=length))
            except obstore.exceptions.GenericError:
                if start < obstore.head(self._store, key)["size"]:
                    raise
                return b""  # a range behind the end is an error of the store

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Write a whole file."""
        with self._translated(f"write {name!r}"):
            _obstore().put(self._store, check_name(name, self.root), data)

    def create(self, name: str, data: bytes | memoryview) -> None:
        """Write a whole file unless it exists."""
        obstore, key = _obstore(), check_name(name, self.root)
        maybe_ours = False  # whether an earlier request may have succeeded although its answer was lost
        for is_last in self._settings.patience.attempts():
            with self._translated(f"create {name!r}"):
                try:
                    obstore.put(self._single, key, data, mode="create")
                except obstore.exceptions.AlreadyExistsError as cause:
                    content = self._content(key)
                    if maybe_ours and content == data:
                        return
                    # S3 answers so as well when another request for the name is under way, which may fail.
                    if content is not None or is_last:
                        raise existing_file_error(name, self.root) from cause
                except obstore.exceptions.GenericError as cause:
                    if is_last or not _may_pass(_status(cause)):
                        raise
                    maybe_ours = True
                else:
                    return

    def list(self, prefix: str = "") -> list[FileInfo]:
        """Return the files whose names start with a string."""
        obstore, folder = _obstore(), prefix.rpartition("/")[0]
        if folder:
            check_name(folder, self.root)
        with self._translated(describe_listing(prefix)):
            chunks = obstore.list(self._store, folder or None, chunk_size=_CHUNK)
            found = [_describe(meta) for chunk in chunks for meta in chunk if meta["path"].startswith(prefix)]
        return sorted(found, key=lambda info: info.name)

    def stat(self, name: str) -> FileInfo | None:
        """Return what is known of a file."""
        with self._translated(f"read {name!r}"):
            try:
                return _describe(_obstore().head(self._store, check_name(name, self.root)))
            except FileNotFoundError:
                return None

    def copy(self, name: str, target: str) -> None:
        """Copy a file to another name, within the store."""
        with self._translated(f"copy {name!r}", name):
            _obstore().copy(self._store, check_name(name, self.root), check_name(target, self.root))

    def delete(self, names: Iterable[str]) -> None:
        """Delete files, many with each request."""
        keys = [check_name(name, self.root) for name in names]
        if not keys:
            return
        with self._translated(f"delete {len(keys)} files, {keys[0]!r} first"):
            try:
                _obstore().delete(self._store, keys)
            except FileNotFoundError:  # of stores that delete one by one; the others may still be there
                for key in keys:
                    self._delete_one(key)

    def open_local(self, name: str) -> memoryview | None:  # noqa: ARG002  # the same for each file
        """Return None: the files are elsewhere."""
        return None

    def _delete_one(self, key: str) -> None:
        try:
            _obstore().delete(self._store, key)
        except FileNotFoundError:
            return

    def _content(self, key: str) -> bytes | None:
        try:
            return bytes(_obstore().get(self._store, key).bytes())
        except FileNotFoundError:
            return None

    @property
    def _store(self) -> Any:
        """The connection whose requests are repeated."""
        return self._opened("repeated", self._settings.patience)

    @property
    def _single(self) -> Any:
        """The connection whose requests are sent once."""
        return self._opened("single", Patience(self._settings.patience.timeout, 0))

    def _opened(self, name: str, patience: Patience) -> Any:
        # Not a cached_property: its lock cannot be pickled, and workers without Weft get this class by value.
        if name not in self._connections:
            self._connections[name] = self._connect(patience)
        return self._connections[name]

    def _connect(self, patience: Patience) -> Any:
        _obstore()
        client: dict[str, Any] = {
            # A large file may take long, as long as some of it arrives.
            "read_timeout": timedelta(seconds=patience.timeout),
            "timeout": timedelta(seconds=patience.timeout * _LONGEST_TRANSFER),
            "connect_timeout": timedelta(seconds=min(patience.timeout, _CONNECT_SECONDS)),
            "allow_http": self._settings.allows_http,
        }
        retry: dict[str, Any] = {
            "max_retries": patience.retries,
            "retry_timeout": timedelta(seconds=patience.timeout * (patience.retries + 1)),
            "backoff": {"max_backoff": timedelta(seconds=5)},
        }
        build = {"s3": _open_s3, "gs": _open_gcs, "azure": _open_azure}[self._address.kind]
        with self._translated("open the store"):
            return build(
                self._address,
                self._settings,
                prefix=self._address.path or None,
                client_options=client,
                retry_config=retry,
            )

    @contextmanager
    def _translated(self, action: str, missing: str | None = None) -> Iterator[None]:
        """Turn an error of obstore into ours; `missing` is the file that must exist."""
        errors = _obstore().exceptions
        try:
            yield
        except FileExistsError:
            raise
        except FileNotFoundError as cause:
            if missing is not None and not _NO_BUCKET.search(str(cause)):
                raise missing_file_error(missing, self.root) from cause
            raise self._failure(action, 404, cause) from cause
        except (errors.PermissionDeniedError, errors.UnauthenticatedError) as cause:
            raise self._failure(action, 403, cause) from cause
        except errors.GenericError as cause:
            raise self._failure(action, _status(cause), cause) from cause
        except (errors.BaseError, ValueError) as cause:
            raise refused_error(self.root, action, _reason(cause)) from cause

    def _failure(self, action: str, status: int, cause: BaseException) -> FileStoreError:
        """Return the error for an answer with an HTTP status, 0 when there was no answer."""
        if status == 404:
            return FileStoreError(
                f"{self.root}: the bucket or container {self._address.container!r} does not exist",
                code="W1907",
                help="create it, or correct the address; Weft creates folders, but no buckets",
            )
        if status in _DENIED:
            return denied_error(self.root, action, _reason(cause))
        if _may_pass(status):
            endpoint = f" at {self._settings.endpoint}" if self._settings.endpoint else ""
            return unreachable_error(f"{self.root}{endpoint}", f"cannot {action}: {_reason(cause)}")
        return refused_error(self.root, action, _reason(cause))


def _obstore() -> Any:
    try:
        import obstore  # noqa: PLC0415  # an extra; only object stores need it
        import obstore.exceptions  # noqa: PLC0415
        import obstore.store  # noqa: PLC0415
    except ImportError as cause:
        raise FileStoreError(
            "object stores need the package obstore, which is not installed here",
            code="W1904",
            help="pip install 'weft[stores]', in the Python of the Spark workers too",
        ) from cause
    if _Threads.lost:
        raise FileStoreError(
            "this process was forked from one that had used an object store, which leaves no threads for its requests",
            code="W1908",
            help="start processes with `multiprocessing.get_context('spawn')`, or use the store in the new processes only",
        )
    _Threads.started = True
    return obstore


def _open_s3(address: StoreAddress, settings: StoreSettings, **options: Any) -> Any:
    config: dict[str, Any] = {"region": settings.region, "virtual_hosted_style_request": not settings.is_path_style}
    if settings.endpoint:
        scheme, _, host = settings.endpoint.partition("://")
        # With the bucket in the host, obstore expects the endpoint to contain it.
        at = host if settings.is_path_style else f"{address.container}.{host}"
        config["endpoint"] = f"{scheme}://{at}"
    for name, setting in (
        ("access_key_id", "access_key"),
        ("secret_access_key", "secret_key"),
        ("session_token", "session_token"),
    ):
        if settings.has(setting):
            config[name] = settings.secret(setting)
    if settings.is_on("anonymous"):
        config["skip_signature"] = True
    return _obstore().store.S3Store(address.container, config=config, **options)


def _open_gcs(address: StoreAddress, settings: StoreSettings, **options: Any) -> Any:
    config: dict[str, Any] = {}
    if settings.has("credentials"):
        config["service_account_key"] = settings.secret("credentials")
    elif path := os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
        config["application_credentials"] = path
    if settings.is_on("anonymous"):
        config["skip_signature"] = True
    return _obstore().store.GCSStore(address.container, config=config, **options)


def _open_azure(address: StoreAddress, settings: StoreSettings, **options: Any) -> Any:
    config: dict[str, Any] = {}
    if account := address.account or settings.get("account"):
        config["account_name"] = account
    for name, setting in (("account_key", "account_key"), ("sas_key", "sas_token")):
        if settings.has(setting):
            config[name] = settings.secret(setting)
    if settings.endpoint:
        config["endpoint"] = settings.endpoint
    if settings.is_on("anonymous"):
        config["skip_signature"] = True
    return _obstore().store.AzureStore(address.container, config=config, **options)


def _describe(meta: Any) -> FileInfo:
    version = meta["version"] or meta["e_tag"] or f"{meta['last_modified'].timestamp()}-{meta['size']}"
    return FileInfo(meta["path"], meta["size"], json.dumps(version).strip('"\\'), meta["last_modified"].timestamp())


def _may_pass(status: int) -> bool:
    """Whether the same request may succeed later: the store did not answer, was busy or failed."""
    return status == 0 or status in _BUSY or status >= 500


def _status(cause: BaseException) -> int:
    """Return the HTTP status that an error of obstore is about, 0 without one; it has no attribute for it."""
    found = _STATUS.search(str(cause))
    return int(found[1]) if found else 0


def _reason(cause: BaseException) -> str:
    """Return what the store answered, without the address of the request and the dump of obstore's internals."""
    text = str(cause).partition("\n\nDebug source")[0]
    if answer := _ANSWER.search(text):
        return f"{answer[1]}: {answer[2]}"
    return text.rpartition(" - ")[2].strip().replace("\n", " ")[:400]
