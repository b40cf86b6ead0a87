"""One way to say that a call is refused: the class, the code, and what the text must hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from weft.errors import CODES, WeftError


@contextmanager
def refused(kind: type[WeftError], code: str, *parts: str) -> Iterator[None]:
    """Expect exactly `kind` with `code`, its text holding every part."""
    assert code in CODES, f"{code} is not a code"
    with pytest.raises(kind) as caught:
        yield
    error = caught.value
    assert type(error) is kind, f"{type(error).__name__} instead of {kind.__name__}: {error}"
    assert error.code == code, f"{error.code} instead of {code}: {error}"
    for part in parts:
        assert part in str(error), f"{part!r} is not in: {error}"
