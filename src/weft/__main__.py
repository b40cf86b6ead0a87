"""``python -m weft``: the command line without its script."""

from __future__ import annotations

from weft.cli.main import main

main()
