"""Kills a stream job at chosen points, restarts it, and prints what it gave; run as a process of its own.

The work is done by forked children, so that a kill costs no start of Python.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

from stream_checkpoints import BATCHES, as_set, run, small_plan
from weft.core import crash
from weft.streams.checkpoint.commit import is_sealed
from weft.streams.checkpoint.folder import find_checkpoint
from weft.testing.stream_engine import read_result


def child(root: Path, kill_at: str | None) -> int:
    """Run the job in a process of its own and return how that ended: 0, 1, or minus a signal."""
    number = os.fork()
    if number == 0:
        try:
            os.environ.pop(crash.VARIABLE, None)
            if kill_at is not None:
                os.environ[crash.VARIABLE] = kill_at
            run(root)
            os._exit(0)
        except BaseException:  # noqa: BLE001  # a forked child must not go on as its parent
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(number, 0)
    return os.waitstatus_to_exitcode(status)


def killed_and_restarted(root: Path, kill_at: str) -> dict[str, object]:
    """Return how a killed run ended, how the next one did, and what both gave together."""
    first = child(root, kill_at)
    found = find_checkpoint(root / "streams" / "status")
    sealed = found is not None and is_sealed(found)
    second = 0 if sealed else child(root, None)
    result = read_result(small_plan(), root)
    shown = sorted(p.name for p in (root / "sink").iterdir() if p.is_file())
    listed = sorted(m.name for m in _listed(root))
    return {
        "point": kill_at,
        "first": first,
        "second": second,
        "sealed": sealed,
        "rows": [[str(v) for v in row] for row in as_set(result.rows)],
        "ledger": {side: dict(counts) for side, counts in result.ledger.items()},
        "stray": sorted(set(shown) ^ set(listed)),
    }


def _listed(root: Path) -> list[Path]:
    from weft.streams.checkpoint.manifest import sink_files

    found = find_checkpoint(root / "streams" / "status")
    return [] if found is None else [path for path in sink_files(found) if isinstance(path, Path)]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for index, point in enumerate(sys.argv[2:]):
        print(json.dumps(killed_and_restarted(folder / str(index), point)), flush=True)  # noqa: T201
    assert len(BATCHES) == 4  # the points are counted in batches
