"""Small value types: types, names, durations, periods, source locations, fingerprints, the installed release."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def engine_version() -> str:
    """Return the installed release, ``0+unknown`` for a source tree that is not installed."""
    try:
        return version("weft")
    except PackageNotFoundError:
        return "0+unknown"
