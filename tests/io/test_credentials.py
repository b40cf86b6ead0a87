"""Secrets by reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from resolvers import source
from weft.errors import ResolutionError
from weft.io.datasource import Credentials, credentials_of


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("reader:s3:cret", Credentials("reader", "s3:cret")),
        ('{"user": "reader", "password": "x"}', Credentials("reader", "x")),
        ('{"password": "x"}', Credentials("", "x")),
        ("token", Credentials("", "token")),
        (" reader: s3cret ", Credentials(" reader", " s3cret ")),  # blanks may be part of a password
    ],
)
def test_a_variable_or_a_file_holds_user_and_password(
    text: str, found: Credentials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GL_DB", text)
    (tmp_path / "gl.secret").write_text(text + "\n")
    assert credentials_of(source("jdbc", credential_ref="env:GL_DB"), tmp_path) == found
    assert credentials_of(source("jdbc", credential_ref="file:gl.secret"), tmp_path) == found
    assert "s3:cret" not in repr(found)


def test_without_a_reference_there_are_none() -> None:
    assert credentials_of(source("jdbc"), Path()) == Credentials()


@pytest.mark.parametrize(
    ("reference", "part"),
    [
        ("env:WEFT_NOT_SET", "environment variable WEFT_NOT_SET"),
        ("file:none.secret", "the file 'none.secret'"),
        ("vault:gl", "neither env:NAME nor file:path"),
        ("env:", "neither env:NAME nor file:path"),
        ("file:broken.json", "not a JSON object with a password"),
        ("file:.", "the file '.'"),
    ],
)
def test_an_empty_reference_is_reported_without_any_secret(reference: str, part: str, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"passwort": "hidden"}')
    with pytest.raises(ResolutionError) as caught:
        credentials_of(source("jdbc", credential_ref=reference), tmp_path)
    assert caught.value.code == "W1318"
    assert part in caught.value.message
    assert "hidden" not in str(caught.value)
