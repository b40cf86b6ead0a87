"""Commands in tests: in this process, with what they print."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema

from weft.cli.documents import COMMANDS, document_schema
from weft.cli.main import run_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Ran:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The document of ``--json``: the whole of stdout; it has the schema of its command."""
        found = json.loads(self.out)
        command = found["schema"].split("/")[1]
        if command in COMMANDS:  # not when no command was given
            jsonschema.validate(found, document_schema(command), jsonschema.Draft202012Validator)
        return found

    @property
    def data(self) -> Any:
        return self.document["data"]

    @property
    def codes(self) -> list[str]:
        return [d["code"] for d in self.document["diagnostics"]]


def weft(*words: str | Path, root: Path | None = None, spark: SparkSession | None = None) -> Ran:
    """Run a command as a user would, in the workspace `root`."""
    out, err = io.StringIO(), io.StringIO()
    where = [] if root is None else ["-C", str(root)]
    with redirect_stdout(out), redirect_stderr(err):
        code = run_command([*where, *map(str, words)], spark=spark)
    return Ran(code, out.getvalue(), err.getvalue())
