"""Set single keys in a file that a user wrote; comments and order are preserved."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from weft.core.source import Source
from weft.errors import EntityError
from weft.pipelines.model.normalize import KINDS


def set_keys(path: Path, changes: Mapping[str, Any]) -> None:
    """Set keys of the entity in a file, atomically; None removes a key.

    Keys are below the root key (``project:``) if the file has one.  A dot separates nested keys:
    ``spark.master``.
    """
    # Bytes, because read_text would turn the line ends of Windows into others.
    text = path.read_bytes().decode("utf-8-sig")
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096  # ruamel would wrap the long lines of the user
    yaml.indent(mapping=2, sequence=_offset(text) + 2, offset=_offset(text))
    at, help = Source(text, 0, 0, str(path)), "correct the file first"
    try:
        data = yaml.load(text)
    except YAMLError as cause:
        raise EntityError(f"invalid YAML: {cause}", help=help, at=at) from cause
    if not isinstance(data, dict):
        raise EntityError("the file does not contain a mapping", help=help, at=at)
    holder = _entity(data)
    for key, value in changes.items():
        _set(holder, key, value)
    out = StringIO()
    yaml.dump(data, out)
    _replace(path, out.getvalue())


def _entity(data: dict[str, Any]) -> dict[str, Any]:
    for kind in KINDS:
        inner = data.get(kind)
        if isinstance(inner, dict) and len(data) == 1:
            return inner
    return data


def _set(holder: dict[str, Any], key: str, value: Any) -> None:
    first, _, rest = key.partition(".")
    if rest:
        _set(holder.setdefault(first, {}), rest, value)
    elif value is None:
        holder.pop(first, None)
    elif holder.get(first) != value or type(holder.get(first)) is not type(value):
        _place(holder, first, value)


_AFTER: Mapping[str, str] = {"version": "name", "status": "version", "input_dataset_version": "input_dataset_id"}
"""The key after which a new key is inserted."""


def _place(holder: dict[str, Any], key: str, value: Any) -> None:
    keys = list(holder)
    before = _AFTER.get(key)
    if key in holder or before not in keys or not hasattr(holder, "insert"):
        holder[key] = value
    else:
        holder.insert(keys.index(before) + 1, key, value)


def _offset(text: str) -> int:
    """Return the indentation of list dashes relative to their key in this file."""
    indent = 0
    for line in text.splitlines():
        bare = line.lstrip(" ")
        if bare.startswith("- "):
            return max(0, len(line) - len(bare) - indent)
        if bare and not bare.startswith("#"):
            indent = len(line) - len(bare)
    return 2


def _replace(path: Path, text: str) -> None:
    # In the same folder, because a rename is atomic only within one file system.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            # Before the rename: after a crash the name must never lead to an empty file.
            os.fsync(file.fileno())
        mode = path.stat().st_mode & 0o777
        os.chmod(name, mode)  # noqa: PTH101  # the name comes from mkstemp
        os.replace(name, path)  # noqa: PTH105
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
