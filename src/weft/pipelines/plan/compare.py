"""Differences between two snapshots: which parts of a run changed.

::

    operations   30 changed: arguments.assignments.0.expression "a * 2" -> "a * 3"
    pins         fx: version 1 -> 2
    inputs       data/rates.csv: 3f9a.. -> 77b0..
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from weft.core.documents import OPEN_WORD, Document

Part = Literal[
    "project",
    "period",
    "operations",
    "selectors",
    "resolver_overrides",
    "pins",
    "datasets",
    "resolvers",
    "datasources",
    "locations",
    "inputs",
    "calendar",
    "moment",
    "session",
    "engine",
]

_MAPPINGS: tuple[Part, ...] = ("selectors", "resolver_overrides", "datasets", "resolvers", "datasources")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Document):
    """One difference: the part, the item, and both values; None means that the item is absent.

    >>> print(Change(part="pins", what="fx version", before=1, after=2))
    pins: fx version 1 -> 2
    """

    UNLISTED: ClassVar = ("before", "after")

    part: Annotated[Part, OPEN_WORD]
    what: str
    seq: int | None = None
    before: Any
    after: Any

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.part}: {self.what} is new"
        if self.after is None:
            return f"{self.part}: {self.what} is gone"
        return f"{self.part}: {self.what} {_text(self.before)} -> {_text(self.after)}"


def _text(value: Any) -> str:
    # A mapping or a list would fill the screen.
    return str(value) if isinstance(value, str | int | float | bool) else "..."


def diff_snapshot(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Change, ...]:
    """Return all differences between two snapshots, in the order of the parts."""
    return tuple(_changes(old, new))


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    for key in ("id", "name", "version", "status"):
        yield from _one("project", key, *((snapshot.get("project") or {}).get(key) for snapshot in (old, new)))
    yield from _mapped("period", old.get("period") or {}, new.get("period") or {})
    yield from _operations(old.get("operations", ()), new.get("operations", ()))
    for part in _MAPPINGS:
        yield from _mapped(part, old.get(part, {}), new.get(part, {}))
    yield from _pins(old.get("pins", ()), new.get("pins", ()))
    yield from _mapped("locations", _places(old), _places(new))
    yield from _mapped("inputs", _files(old), _files(new))
    if old.get("calendar") != new.get("calendar"):
        yield from _mapped("calendar", old.get("calendar") or {}, new.get("calendar") or {})
    for key in ("known_at", "run_at", "today"):
        yield from _one("moment", key, old.get(key), new.get(key))
    yield from _mapped("session", old.get("session", {}), new.get("session", {}))
    yield from _one("engine", "engine", old.get("engine"), new.get("engine"))


def _one(part: Part, what: str, before: Any, after: Any, seq: int | None = None) -> Iterator[Change]:
    if before != after:
        yield Change(part=part, what=what, before=before, after=after, seq=seq)


def _mapped(part: Part, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for key in dict.fromkeys((*before, *after)):
        yield from _one(part, key, before.get(key), after.get(key))


def _operations(before: Sequence[Any], after: Sequence[Any]) -> Iterator[Change]:
    # By seq, which stays when an operation is renamed or others are inserted before it.
    old, new = ({op["seq"]: op for op in ops} for ops in (before, after))
    for seq in sorted({*old, *new}):
        if seq not in old or seq not in new:
            yield Change(part="operations", what=f"operation {seq}", before=old.get(seq), after=new.get(seq), seq=seq)
            continue
        for path, was, now in _leaves(old[seq], new[seq], ""):
            yield Change(part="operations", what=f"{seq} {path}", before=was, after=now, seq=seq)


def _leaves(before: Any, after: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the paths at which two values differ, down to where their shapes differ."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys((*before, *after)):
            yield from _leaves(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (was, now) in enumerate(zip(before, after, strict=True)):
            yield from _leaves(was, now, f"{path}.{i}")
    elif before != after:
        yield path, before, after


def _pins(before: Sequence[Any], after: Sequence[Any]) -> Iterator[Change]:
    def keyed(pins: Sequence[Any]) -> dict[str, Any]:
        return {f"{p['role']} {p['alias']}" + ("" if p["seq"] is None else f" of {p['seq']}"): p for p in pins}

    old, new = keyed(before), keyed(after)
    for key in dict.fromkeys((*old, *new)):
        if key not in old or key not in new:
            yield from _one("pins", key, old.get(key), new.get(key))
            continue
        for name in ("dataset_id", "dataset_version", "resolver_id", "resolver_version", "resolver_source"):
            yield from _one("pins", f"{key} {name}", old[key][name], new[key][name], old[key]["seq"])


def _places(snapshot: Mapping[str, Any]) -> dict[str, str]:
    paths_by_read: dict[str, list[str]] = {}
    for place in snapshot.get("locations", ()):
        paths_by_read.setdefault(place["read"], []).append(
            str(place.get("path") or place.get("table") or place.get("catalog"))
        )
    return {read: ", ".join(paths) for read, paths in paths_by_read.items()}


def _files(snapshot: Mapping[str, Any]) -> dict[str, str]:
    """Return the fingerprint of every file that was read, by its path."""
    return {
        file["path"]: file["sha256"] or f"{file['bytes']} bytes at {file['mtime_ns']}"
        for entry in snapshot.get("inputs", {}).values()
        for file in entry["files"]
    }
