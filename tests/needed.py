"""What a test needs from the machine: where it is missing the test is skipped, and fails in CI."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def stop_without(problem: str) -> NoReturn:
    """Skip a test with a sentence that says what is missing; in CI, where nothing may be missing, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(problem, pytrace=False)
    pytest.skip(problem)
