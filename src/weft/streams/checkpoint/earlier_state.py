"""State of earlier versions: one folder for each batch and group, whose index.json lists its files.

::

    state/j<join>/<batch>/<group>/index.json      lists all files of the state, also those of earlier batches
                                  left.arrow      as today
                                  left.flags      one byte for each row of all segments in turn
                                  left.sessions   as today
                                  left.seen       without the column of routes

A group had rows with any hash, so its index becomes an entry for all hashes; the first commit then lists the state as
today.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.core.frozen import FrozenMap, freeze
from weft.io.stores.store_path import Place
from weft.streams.checkpoint.folder import Checkpoint, damaged_file, read_document, read_job_record
from weft.streams.checkpoint.ledger import join_number
from weft.streams.checkpoint.manifest import Manifest

_LEAST, _GREATEST = -(2**63), 2**63 - 1


def list_state(checkpoint: Checkpoint, manifest: Manifest) -> tuple[FrozenMap[str, Any], ...]:
    """Return the entries of the state after a batch, also of a batch that an earlier version committed."""
    if manifest.state is not None:
        return manifest.state
    # Only joins with state have statistics, and each of their groups wrote its state in every batch.
    joins = {join_number(side) for side in manifest.stats}
    groups = read_job_record(checkpoint).groups
    entries: list[FrozenMap[str, Any]] = []
    for join in sorted(joins):
        folder = checkpoint.join_state(join) / str(manifest.batch)
        files: list[Place] = sorted(folder.glob("*/index.json"))
        if len(files) != groups:
            raise damaged_file(
                folder, f"it has the state of {len(files)} groups, and batch {manifest.batch} wrote {groups}"
            )
        entries.extend(_convert_index(join, path) for path in files)
    return tuple(entries)


def _convert_index(join: int, path: Place) -> FrozenMap[str, Any]:
    index = read_document(path)
    try:
        entry: FrozenMap[str, Any] = freeze(
            {
                "join": join,
                "first": _LEAST,
                "last": _GREATEST,
                "batch": index["batch"],
                "clock": index["clock"],
                **{side: _convert_side(index, side) for side in ("left", "right")},
            }
        )
    except (KeyError, TypeError, AttributeError) as cause:
        raise damaged_file(path, f"{type(cause).__name__} {cause}") from cause
    return entry


def _convert_side(index: Mapping[str, Any], side: str) -> dict[str, Any]:
    sums: Mapping[str, str] = index.get("sums") or {}

    def describe(kind: str) -> dict[str, str] | None:
        path = (index.get(kind) or {}).get(side)
        return {"path": path, "sum": sums.get(path, "")} if path else None

    segments = [
        {
            "start": 0,
            "sum": sums.get(one["path"], ""),
            **{k: one[k] for k in ("path", "rows", "batch", "min", "max", "bytes")},
        }
        for one in index["segments"]
        if one["side"] == side
    ]
    flags = describe("flags")
    found = {"segments": segments, "flags": (), "sessions": describe("sessions"), "seen": describe("seen")}
    return found if flags is None else {**found, "full": flags}
