"""Warnings that point at the user's line, however deep in Weft they arise."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1]) + os.sep


def notice(message: str, category: type[Warning]) -> None:
    """Warn at the first line outside this package."""
    depth = 1
    frame = sys._getframe(depth)  # noqa: SLF001  # the documented way to find a caller
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        depth += 1
    warnings.warn(message, category, stacklevel=depth + 1)
