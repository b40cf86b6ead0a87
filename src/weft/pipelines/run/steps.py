"""Steps: the working set written down between two operations, so that later ones and a resume start from there."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from weft.expr.spark.types import to_spark
from weft.io.spark.files import stage_files
from weft.io.spark.session import Session
from weft.io.staged import Staged, file_hash
from weft.pipelines.plan.operations.resolved import ResolvedDelete, ResolvedOperation, Working
from weft.pipelines.plan.project import ProjectPlan
from weft.pipelines.run.places import steps_folder
from weft.pipelines.spark.frame import WorkingFrame, started

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_step(df: DataFrame, root: Path, run_id: str, seq: int) -> Staged:
    """Write the working set after an operation; the list of its files comes last and says that it is whole."""
    folder = steps_folder(root, run_id) / str(seq)
    staged = stage_files(df, folder, format="parquet", run_id=run_id)
    listing = folder.with_suffix(".json.part")
    listing.write_text(json.dumps([asdict(file) for file in staged.files]), encoding="utf-8")
    listing.replace(folder.with_suffix(".json"))
    return staged


def whole_steps(root: Path, run_id: str) -> tuple[int, ...]:
    """Return the operations after which the working set lies on the disk as it was written, newest first."""
    folder = steps_folder(root, run_id)
    listings = folder.glob("*.json") if folder.is_dir() else ()
    found = [int(listing.stem) for listing in listings if listing.stem.isdigit() and _is_whole(listing)]
    return tuple(sorted(found, reverse=True))


def _is_whole(listing: Path) -> bool:
    folder = listing.with_suffix("")
    try:
        files = json.loads(listing.read_text(encoding="utf-8"))
        return all(
            (path := folder / file["path"]).is_file()
            and path.stat().st_size == file["bytes"]
            and file_hash(path) == file["sha256"]
            for file in files
        )
    except (OSError, ValueError, KeyError):
        return False


def read_step(session: Session, plan: ProjectPlan, root: Path, run_id: str, seq: int) -> WorkingFrame:
    """Return the working set that was written after an operation."""
    before = [op for op in plan.operations if op.seq <= seq]
    working = _after(before)
    schema = StructType()
    for field in working.schema.fields:
        schema.add(field.name, to_spark(field.dtype))
    df = session.spark.read.schema(schema).parquet(str(steps_folder(root, run_id) / str(seq)))
    return started(df, working, deleted=any(isinstance(op, ResolvedDelete) for op in before))


def _after(operations: list[ResolvedOperation]) -> Working:
    return operations[-1].after
