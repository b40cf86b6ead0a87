"""Small value types: types, names, durations, periods, source locations, fingerprints, the installed release."""

from __future__ import annotations


def engine_version() -> str:
    """Return the installed release, ``0+unknown`` for a source tree that is not installed."""
    # It loads `email`, and most programs never ask for the release.
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        return version("weft")
    except PackageNotFoundError:
        return "0+unknown"
