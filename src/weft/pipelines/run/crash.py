"""The crash points of a run; see `weft.core.crash`."""

from __future__ import annotations

from weft.core.crash import VARIABLE as VARIABLE  # noqa: PLC0414  # the steps of a run ask here
from weft.core.crash import CrashPoint as CrashPoint  # noqa: PLC0414
from weft.core.crash import crash_point as crash_point  # noqa: PLC0414
