"""The end of the input: everything that waits comes out, and the checkpoint is sealed."""

from __future__ import annotations

from weft.streams.checkpoint.commit import seal
from weft.streams.checkpoint.manifest import Manifest
from weft.streams.run.step import Batches


def flushed(batches: Batches) -> Manifest:
    """Flush a statement and seal its checkpoint: it refuses to go on from here."""
    manifest = batches.flush()
    seal(batches.checkpoint, manifest)
    batches.sink.forget_staging()
    return manifest
