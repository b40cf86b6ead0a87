"""DataSource: a place that holds data, and its credentials, which are stored by reference only.

::

    credential_ref: env:GL_DATABASE        GL_DATABASE='reader:s3cret'   or   '{"user": "reader", "password": "s3cret"}'
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from weft.core import types
from weft.core.frozen import EMPTY, FrozenMap
from weft.core.source import NO_SOURCES, Source
from weft.core.spec import ALWAYS, NEVER, Locations, ReadAs, Spec, Text, freeze_values
from weft.core.types import Field
from weft.errors import ResolutionError

EntityStatus = Literal["active", "disabled"]
FileFormat = Literal["parquet", "csv", "json"]
WriteMode = Literal["replace_period", "append", "merge", "fail_if_exists"]

PERIOD = Field("_period", types.STRING)
"""The column with the period of a row; sinks replace rows by it."""


class _ConnectorKind:
    """The type of a datasource in files: the kind of a connector, or ``database``, the former name of jdbc."""

    @staticmethod
    def kinds() -> list[str]:
        """Return the types that a file may name now: connectors may be registered at any time."""
        from weft.io.connectors import connectors  # noqa: PLC0415  # connectors read datasources

        return [*(connector.kind for connector in connectors()), "database"]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return the schema of a string that is one of the types."""
        from pydantic_core import PydanticKnownError, core_schema  # noqa: PLC0415  # only readers of files need it

        def check(value: Any) -> Any:
            if value in self.kinds():
                return "jdbc" if value == "database" else value
            *others, last = map(repr, self.kinds())
            raise PydanticKnownError("literal_error", {"expected": f"{', '.join(others)} or {last}"})

        return core_schema.no_info_before_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Return the types as an enum, as for a Literal."""
        return {"enum": self.kinds(), **handler(schema)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource(Spec):
    """A place that holds data, without its secrets.

    `type` is the kind of a connector, `credential_ref` names the place of its secret.
    """

    FIRST: ClassVar = ("id", "name", "type", "status", "description")
    id: Text = field(default="", metadata=ALWAYS)
    name: Text = field(default="", metadata=ALWAYS)
    type: Annotated[str, _ConnectorKind()]
    options: Annotated[FrozenMap[str, Any], ReadAs(dict[str, Any], freeze_values)] = field(
        default=EMPTY, metadata=ALWAYS
    )
    status: EntityStatus = field(default="active", metadata=ALWAYS)
    credential_ref: Text | None = None
    description: str = ""
    owner: str = field(default="", compare=False, repr=False, metadata=NEVER)
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name


_FORMS = "write `env:NAME` or `file:path`; the variable or file holds `user:password` or a JSON object"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user and a password, or a token alone; never printed."""

    user: str = ""
    password: str = field(default="", repr=False)


def credentials_of(source: DataSource, root: Path) -> Credentials:
    """Return the credentials that a datasource refers to; without a reference they are empty."""
    if source.credential_ref is None:
        return Credentials()
    at, owner = source.at.of("credential_ref"), f"datasource {source.id!r}"
    text = read_secret(source.credential_ref, root, owner, at=at)
    if not text.startswith("{"):
        # A string without a colon is a password or token alone; a password may contain colons itself.
        user, colon, password = text.partition(":")
        return Credentials(user, password) if colon else Credentials("", text)
    try:
        values = json.loads(text)
        return Credentials(str(values.get("user", "")), str(values["password"]))
    except (ValueError, KeyError, AttributeError, RecursionError) as cause:
        raise ResolutionError(
            f"the credential {source.credential_ref!r} of {owner} is not a JSON object with a password",
            code="W1318",
            help='write {"user": "...", "password": "..."} or user:password',
            at=at,
        ) from cause


def read_secret(reference: str, root: Path, owner: str, *, at: Source | None = None) -> str:
    """Return the secret that ``env:NAME`` or ``file:path`` holds, without the line end of a file."""
    kind, _, name = reference.partition(":")
    if kind not in ("env", "file") or not name:
        # The value may be the secret itself instead of a reference: the message does not repeat it.
        raise ResolutionError(
            f"the credential reference of {owner} is neither env:NAME nor file:path", code="W1318", help=_FORMS, at=at
        )
    if kind == "env":
        text = os.environ.get(name, "")
        what = f"the environment variable {name}, which is not set"
    else:
        text, what = _file_text(root / name), f"the file {name!r}, which cannot be read"
    if not text.strip():
        raise ResolutionError(f"{owner} takes its credential from {what}", code="W1318", help=_FORMS, at=at)
    return text.strip("\r\n")


def _file_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
