"""Secrets by reference: ``env:NAME`` or ``file:path`` names a user and a password, no file holds them.

::

    credential_ref: env:GL_DATABASE        GL_DATABASE='reader:s3cret'   or   '{"user": "reader", "password": "s3cret"}'
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from weft.core.source import Source
from weft.errors import ResolutionError
from weft.io.datasource import DataSource

_FORMS = "write `env:NAME` or `file:path`; what it names holds `user:password` or a JSON object"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user and a password, or a token alone; never printed."""

    user: str = ""
    password: str = field(default="", repr=False)


def credentials_of(source: DataSource, root: Path) -> Credentials:
    """Return the credentials that a datasource refers to; without a reference they are empty."""
    if source.credential_ref is None:
        return Credentials()
    at = source.at.of("credential_ref")
    return read_credentials(source.credential_ref, root, f"datasource {source.id!r}", at=at)


def read_credentials(reference: str, root: Path, owner: str, *, at: Source | None = None) -> Credentials:
    """Return what a reference holds; a text without a colon is a password or token alone."""
    text = read_secret(reference, root, owner, at=at)
    if not text.startswith("{"):
        user, colon, password = text.partition(":")
        return Credentials(user, password) if colon else Credentials("", text)
    try:
        found = json.loads(text)
        return Credentials(str(found.get("user", "")), str(found["password"]))
    except (ValueError, KeyError, AttributeError, RecursionError) as cause:
        raise ResolutionError(
            f"the credential {reference!r} of {owner} is not a JSON object with a password",
            code="W1318",
            help='write {"user": "...", "password": "..."} or user:password',
            at=at,
        ) from cause


def read_secret(reference: str, root: Path, owner: str, *, at: Source | None = None) -> str:
    """Return the text that ``env:NAME`` or ``file:path`` holds, without the line end of a file."""
    kind, _, name = reference.partition(":")
    if kind not in ("env", "file") or not name:
        # What stands here instead of a reference may be the secret itself: it is not repeated.
        raise ResolutionError(
            f"the credential reference of {owner} is neither env:NAME nor file:path",
            code="W1318",
            help=_FORMS,
            at=at,
        )
    if kind == "env":
        text = os.environ.get(name, "")
        what = f"the environment variable {name}, which is not set"
    else:
        text, what = _file_text(root / name), f"the file {name!r}, which does not read"
    if not text.strip():
        raise ResolutionError(f"{owner} takes its credential from {what}", code="W1318", help=_FORMS, at=at)
    return text.strip("\r\n")


def _file_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
