"""A process of its own that begins a run: ``python store_process.py URL ROOT RUN_ID``.

It says ``ready``, waits for a line, tries to begin the run, says what came of it and waits to be killed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from store_values import new_run
from weft.errors import WeftError
from weft.pipelines.store.open import open_store


def main(url: str, root: str, run: str) -> None:
    with open_store(url, Path(root)) as store:
        _say("ready")
        sys.stdin.readline()
        try:
            store.create_run(new_run(run_id=run))
        except WeftError as refused:
            _say(refused.code)
        else:
            _say("began")
        sys.stdin.readline()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
