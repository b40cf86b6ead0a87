"""The files that a read finds on this machine: how large they are, and which of them are missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from weft.errors import Diagnostic, ResolutionError
from weft.io.location import no_data
from weft.io.paths import data_files, full_path, is_local
from weft.pipelines.plan.catalog import Catalog
from weft.pipelines.plan.reads import Read
from weft.pipelines.plan.resolver.locate import datasource_of


def bytes_of(read: Read, catalog: Catalog, root: Path) -> int | None:
    """Return how many bytes the files of a read have; None when nobody knows without asking."""
    total = 0
    for location in read.locations:
        if location.path is None:
            return None
        try:
            path = full_path(location, datasource_of(location, catalog), root)
            files = data_files(path) if is_local(path) else ()
            total += sum(file.stat().st_size for file in files)
        except (ResolutionError, OSError):
            return None
        if not files:
            return None
    return total if read.locations else None


def missing_data(read: Read, catalog: Catalog, root: Path) -> tuple[Diagnostic, ...]:
    """Return a warning when a run would not find the files of a read; places elsewhere are not asked."""
    missing = []
    for location in read.locations:
        if location.path is None or location.missing == "skip":
            continue
        try:
            path = full_path(location, datasource_of(location, catalog), root)
        except ResolutionError as problem:
            return tuple(replace(d, severity="warning") for d in problem.diagnostics)
        if is_local(path) and not data_files(path):
            missing.append((location, path))
    found = no_data(missing).diagnostics if missing else ()
    return tuple(replace(d, message=f"{read.name}: {d.message}", severity="warning") for d in found)
