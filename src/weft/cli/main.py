"""``weft``: the command line.

A command imports what it needs when it is called, so that none waits for Spark that needs none.
Options of every command (``-C``, ``--json``, ``--quiet`` ...) may stand before or after its name.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.call import Call
from weft.cli.commands import (
    connectors,
    dataset,
    doctor,
    explain,
    init,
    plan,
    preview,
    project,
    rerun,
    resolver,
    run,
    runs,
    schema,
    stream,
    test,
    validate,
)
from weft.cli.envelope import FAILED, INTERRUPTED, OK, USAGE, Envelope, in_order, refused
from weft.cli.terminal import has_colour, say, shown
from weft.core import engine_version
from weft.errors import WeftError, WorkspaceError
from weft.redaction import redact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVERYWHERE = "-C DIR, --json, --quiet, --verbose and --no-input work with every command."
_FLAGS = {
    "--json": "json",
    "--quiet": "quiet",
    "-q": "quiet",
    "--verbose": "verbose",
    "-v": "verbose",
    "--no-input": "no_input",
}

app = typer.Typer(
    name="weft",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Temporal joins and pipelines on Spark. " + _EVERYWHERE,
)
_COMMANDS: dict[str, Callable[..., Envelope]] = {
    "init": init.init,
    "validate": validate.validate,
    "plan": plan.plan,
    "run": run.run,
    "preview": preview.preview,
    "rerun": rerun.rerun,
    "test": test.scenarios,
    "doctor": doctor.doctor,
    "explain": explain.explain,
}
for _name, _command in _COMMANDS.items():
    app.command(_name, epilog=_EVERYWHERE)(_command)
app.command("test-record", epilog=_EVERYWHERE, hidden=True)(test.record)
for _name, _group in {
    "runs": runs.app,
    "dataset": dataset.app,
    "resolver": resolver.app,
    "project": project.app,
    "schema": schema.app,
    "stream": stream.app,
    "connectors": connectors.app,
}.items():
    app.add_typer(_group, name=_name, epilog=_EVERYWHERE)


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    *,
    folder: Annotated[str, typer.Option("-C", metavar="DIR", help="The workspace.")] = ".",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result alone.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print more.")] = False,
    no_input: Annotated[bool, typer.Option("--no-input", help="Never ask.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> Envelope | None:
    """Hold the options of every command; `run_command` has read them before."""
    del folder, json, quiet, verbose, no_input
    if version:
        sys.stdout.write(f"weft {engine_version()}\n")
        raise typer.Exit(OK)
    return None if context.invoked_subcommand else Envelope(command="weft", text=context.get_help())


def main() -> None:
    """Run the command of this process and end it with its exit code."""
    sys.exit(run_command(sys.argv[1:]))


def run_command(argv: Sequence[str], *, spark: SparkSession | None = None) -> int:
    """Run one command, print its answer and return its exit code; `spark` is used instead of a new session."""
    try:
        call, rest = taken(argv)
    except WeftError as problem:
        return _printed(refused("weft", problem), Call(json="--json" in argv))
    call = replace(call, spark=spark)
    name = next((word for word in rest if not word.startswith("-")), "weft").removesuffix("-record")
    try:
        answer: Any = app(rest, prog_name="weft", standalone_mode=False, obj=call)
    except WeftError as problem:
        answer = refused(name, problem, getattr(problem, "data", None))
    except KeyboardInterrupt:
        answer = INTERRUPTED
    except Exception as problem:  # noqa: BLE001  # whatever it is, a program that reads JSON gets a document
        if hasattr(problem, "format_message"):
            return _misused(name, problem, call)
        answer = _broken(name, problem)
    if answer == INTERRUPTED:
        answer = Envelope(command=name, exit_code=INTERRUPTED)
    if isinstance(answer, Envelope):
        return _printed(answer, call)
    return int(answer or OK)


def taken(argv: Sequence[str]) -> tuple[Call, list[str]]:
    """Return the options of every command, wherever they stand, and the other words."""
    said: dict[str, Any] = {}
    rest: list[str] = []
    words = iter(argv)
    for word in words:
        if word == "--":
            rest += ["--", *words]
        elif word in _FLAGS:
            said[_FLAGS[word]] = True
        elif word == "-C":
            folder = next(words, None)
            if folder is None:
                raise WorkspaceError("-C names no folder", code="W1803", help="as in -C DIR")
            said["folder"] = Path(folder)
        else:
            rest.append(word)
    if rest[:2] == ["test", "record"]:  # `test` takes names of scenarios, so this is a command of its own
        rest[:2] = ["test-record"]
    return Call(**said), _with_counts(rest)


def _with_counts(words: Sequence[str]) -> list[str]:
    """Return words in which an option whose number may be left out has one.

    >>> _with_counts(["stream", "status", "--rejects", "job.sql"])
    ['stream', 'status', '--rejects', '20', 'job.sql']
    """
    found: list[str] = []
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        found.append(word)
        if word == "--rejects" and not following.isdigit():
            found.append("20")
    return found


def _printed(answer: Envelope, call: Call) -> int:
    if call.json:
        sys.stdout.write(answer.to_json() + "\n")
        return answer.exit_code
    wanted = [d for d in in_order(answer.diagnostics) if not (call.quiet and d.severity != "error")]
    colour = has_colour(sys.stderr)
    for found in wanted:
        say(shown(found, colour=colour))
    if answer.text:
        sys.stdout.write(answer.text.rstrip("\n") + "\n")
        sys.stdout.flush()
    if answer.next and not call.quiet:
        say("next: " + "   or: ".join(answer.next))
    return answer.exit_code


def _broken(name: str, problem: Exception) -> Envelope:
    """Return the answer of a command that met a mistake of ours; what happened goes to stderr in full."""
    say("".join(traceback.format_exception(problem)).rstrip())
    say("this is a mistake of Weft itself: please report it with the lines above")
    told = {"type": type(problem).__name__, "message": redact(str(problem))}
    return Envelope(command=name, data={"error": told}, exit_code=FAILED)


def _misused(name: str, problem: Any, call: Call) -> int:
    """Print what is wrong with the words of a command; the exit code is that of usage."""
    said = problem.format_message()
    if call.json:
        document = Envelope(command=name, data={"usage": said}, exit_code=USAGE)
        sys.stdout.write(document.to_json() + "\n")
        return USAGE
    if said.startswith("Usage:"):  # nothing was said, and help is the answer
        say(said)
        return USAGE
    context = getattr(problem, "ctx", None)
    if context is not None:
        say(context.get_usage())
    say(f"error: {said}")
    return int(getattr(problem, "exit_code", FAILED))
