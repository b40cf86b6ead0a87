"""Rows that wait in a state that is left behind: kept as rejects, so that they are not lost without a word."""

from __future__ import annotations

from weft.streams.checkpoint.folder import Checkpoint
from weft.streams.kernel.places import Places
from weft.streams.kernel.spec import NEVER
from weft.streams.kernel.state_files import GroupPlace, save_rejects, waiting


def abandon(old: Checkpoint, new: Checkpoint, batch: int) -> int:
    """Write the rows that wait in the state of `old` as rejects of `new` and return how many they are."""
    before, after = (Places(str(c.root.absolute())) for c in (old, new))
    count = 0
    for path in sorted(old.state.glob(f"j*/{batch}/*/index.json")):
        join, group = int(path.parts[-4][1:]), int(path.parts[-2])
        rows = waiting(GroupPlace(before, join, group), batch)
        save_rejects(GroupPlace(after, join, group), rejects=rows, batch=batch, watermark=NEVER)
        count += sum(len(r) for r in rows)
    return count
