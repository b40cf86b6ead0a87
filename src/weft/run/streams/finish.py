"""The end of the input: everything that waits comes out, and the checkpoint is sealed."""

from __future__ import annotations

from weft.run.streams.step import Batches
from weft.store.streams.commit import seal
from weft.store.streams.manifest import Manifest


def flushed(batches: Batches) -> Manifest:
    """Flush a statement and seal its checkpoint: it refuses to go on from here."""
    manifest = batches.flush()
    seal(batches.checkpoint, manifest)
    batches.sink.forget_staging()
    return manifest
