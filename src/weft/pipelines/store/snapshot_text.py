"""The one text of a snapshot and its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from weft.pipelines.store.column_types import json_text


def snapshot_text(snapshot: Mapping[str, Any]) -> str:
    """Return the canonical JSON of a snapshot, which the store keeps."""
    return json_text(snapshot)


def snapshot_fingerprint(snapshot: Mapping[str, Any]) -> str:
    """Return the sha256 of the canonical JSON of a snapshot, in hex.

    >>> snapshot_fingerprint({"b": 1, "a": 2}) == snapshot_fingerprint({"a": 2, "b": 1})
    True
    """
    return hashlib.sha256(snapshot_text(snapshot).encode()).hexdigest()
