"""Every command that a message of Weft tells people to type exists, with its options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from weft.cli.main import app

SRC = Path(__file__).parents[2] / "src"
EVERYWHERE = {"-C", "--json", "--quiet", "-q", "--verbose", "-v", "--no-input"}


def written() -> Iterator[tuple[str, str]]:
    """Yield file and words of each ``weft ...`` in backticks, what is filled in as X."""
    for path in sorted((SRC / "weft").rglob("*.py")):
        for found in re.finditer(r"(?<!`)`weft ([^`\n]+)`(?!`)", path.read_text(encoding="utf-8")):
            yield path.relative_to(SRC).as_posix(), re.sub(r"\{[^}]*\}", "X", found[1])


def problem(words: str) -> str | None:
    """Return why the words cannot be typed, None when they can."""
    at: Any = get_command(app)
    said = words.split()
    if said[:2] == ["test", "record"]:  # one command of two words
        said[:2] = ["test-record"]
    while said and hasattr(at, "commands") and said[0] in at.commands:
        at = at.commands[said.pop(0)]
    if at.name is None or (hasattr(at, "commands") and said and not said[0].startswith("-")):
        return f"there is no command {' '.join(said)!r}"
    known = EVERYWHERE | {option for parameter in at.params for option in parameter.opts}
    wrong = [word for word in said if word.startswith("-") and word.partition("=")[0] not in known]
    return f"{at.name} has no option {', '.join(wrong)}" if wrong else None


HINTS = sorted(set(written()))


@pytest.mark.parametrize(("file", "words"), HINTS, ids=[f"{f}-{w}" for f, w in HINTS])
def test_what_a_message_says_can_be_typed(file: str, words: str) -> None:
    assert problem(words) is None, f"{file}: `weft {words}`: {problem(words)}"


def test_the_check_sees_what_does_not_exist() -> None:
    assert len(HINTS) > 60
    assert problem("runs kill X") is not None
    assert problem("run --sandpit") is not None
    assert problem("runs cancel X") is None
