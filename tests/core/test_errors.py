"""The error tree: codes, diagnostics, and errors that are also built-ins."""

from __future__ import annotations

import copy
import pickle
import re
from typing import get_args

import pytest

from weft import errors
from weft.core.source import Source
from weft.errors import CODES, Code, Diagnostic, UnknownColumnError, WeftError

ERRORS = tuple(
    c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, WeftError) and c is not WeftError
)


def test_codes_and_titles_are_the_same_closed_set() -> None:
    assert tuple(CODES) == get_args(Code)
    assert all(re.fullmatch(r"W\d{4}", code) for code in CODES)
    assert list(CODES) == sorted(CODES)


def test_every_title_is_short_different_and_without_a_full_stop() -> None:
    assert len(set(CODES.values())) == len(CODES)
    assert all(title and title[0].islower() and len(title) < 50 and title[-1] != "." for title in CODES.values())


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: e.__name__)
def test_an_error_is_also_the_built_in_error_that_fits(error: type[WeftError]) -> None:
    assert error.__bases__[0] is WeftError
    assert error.__bases__[1] in {KeyError, ValueError, TypeError, RuntimeError}


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: e.__name__)
def test_an_error_has_a_code_a_message_and_a_next_step(error: type[WeftError]) -> None:
    raised = error("it broke", help="correct it")
    assert raised.code in CODES
    assert (raised.message, raised.help) == ("it broke", "correct it")
    assert str(raised) == f"error[{raised.code}]: it broke\n = help: correct it"


def test_a_key_error_prints_its_text_and_not_a_quoted_one() -> None:
    with pytest.raises(KeyError) as caught:
        raise UnknownColumnError("the left relation has no column 'x'")
    assert str(caught.value) == "error[W0101]: the left relation has no column 'x'"


def test_an_error_holds_every_finding_in_order() -> None:
    raised = errors.ExpressionError(
        [Diagnostic("W0207", "no column 'a'"), Diagnostic("W0206", "no function F", severity="warning")]
    )
    assert (raised.code, raised.message, raised.help) == ("W0207", "no column 'a'", "")
    assert str(raised) == "error[W0207]: no column 'a'\nwarning[W0206]: no function F"


def test_an_error_takes_its_findings_from_any_iterable_once() -> None:
    raised = WeftError(Diagnostic("W0101", text) for text in "ab")
    assert [d.message for d in raised.diagnostics] == ["a", "b"]
    assert [d.message for d in raised.diagnostics] == ["a", "b"]


@pytest.mark.parametrize("error", [WeftError, *ERRORS], ids=lambda e: e.__name__)
def test_an_error_survives_the_way_to_another_process(error: type[WeftError]) -> None:
    sent = error([Diagnostic("W0201", "no", help="yes", at=Source("a b", 2, 3, "f.yml"))])
    for got in (pickle.loads(pickle.dumps(sent)), copy.copy(sent)):  # noqa: S301
        assert type(got) is error
        assert got.diagnostics == sent.diagnostics
        assert str(got) == str(sent)


def test_help_of_several_lines_has_a_mark_on_each() -> None:
    assert str(Diagnostic("W0101", "m", help="one\ntwo")).splitlines()[1:] == [" = help: one", " = help: two"]


def test_a_diagnostic_shows_its_place_between_message_and_help() -> None:
    shown = str(Diagnostic("W0207", "no column 'b'", help="write a", at=Source("a = b", 4, 5)))
    assert shown.splitlines() == [
        "error[W0207]: no column 'b'",
        "  --> <text>:1:5",
        "   |",
        " 1 | a = b",
        "   |     ^",
        " = help: write a",
    ]


def test_the_json_form_has_the_keys_that_editors_read() -> None:
    found = Diagnostic("W0207", "m", help="h", at=Source("x\nyz", 3, 4, "a.yml"))
    assert found.to_dict() == {
        "code": "W0207",
        "severity": "error",
        "file": "a.yml",
        "range": {"start": {"line": 1, "character": 1}, "end": {"line": 1, "character": 2}},
        "message": "m",
        "help": "h",
    }
    nowhere = Diagnostic("W0207", "m").to_dict()
    assert (nowhere["file"], nowhere["range"]) == (None, None)
