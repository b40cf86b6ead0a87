"""``weft``: the command line.

A command imports what it needs when it is called, so that a command without Spark starts fast.
Options of every command (``-C``, ``--json``, ``--quiet`` ...) may come before or after its name.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Context, Exit, Option, Typer

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
    resolver,
    run,
    runs,
    schema,
    stream,
    test,
    validate,
)
from weft.cli.envelope import FAILED, INTERRUPTED, OK, USAGE, Envelope, sort_findings
from weft.cli.terminal import format_finding, has_colour, print_stderr
from weft.core import engine_version
from weft.errors import WeftError, WorkspaceError
from weft.redaction import redact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COMMON = "Every command accepts -C DIR, --json, --quiet, --verbose and --no-input."
_FLAGS = {
    "--json": "json",
    "--quiet": "quiet",
    "-q": "quiet",
    "--verbose": "verbose",
    "-v": "verbose",
    "--no-input": "no_input",
}

app = Typer(
    name="weft",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Temporal joins and pipelines on Spark. " + _COMMON,
)
_COMMANDS: dict[str, Callable[..., Envelope]] = {
    "init": init.init,
    "validate": validate.validate,
    "plan": plan.plan,
    "run": run.run,
    "preview": preview.preview,
    "rerun": run.rerun,
    "test": test.run_tests,
    "doctor": doctor.doctor,
    "explain": explain.explain,
}
for _name, _command in _COMMANDS.items():
    app.command(_name, epilog=_COMMON)(_command)
app.command("test-record", epilog=_COMMON, hidden=True)(test.record)
for _name, _group in {
    "runs": runs.app,
    "dataset": dataset.app,
    "resolver": resolver.app,
    "project": project.app,
    "schema": schema.app,
    "stream": stream.app,
    "connectors": connectors.app,
}.items():
    app.add_typer(_group, name=_name, epilog=_COMMON)


@app.callback(invoke_without_command=True)
def options(
    context: Context,
    *,
    folder: Annotated[str, Option("-C", metavar="DIR", help="Folder of the workspace.")] = ".",
    json: Annotated[bool, Option("--json", help="Print one JSON document.")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print only the result.")] = False,
    verbose: Annotated[bool, Option("--verbose", "-v", help="Print more details.")] = False,
    no_input: Annotated[bool, Option("--no-input", help="Never ask for input.")] = False,
    version: Annotated[bool, Option("--version", help="Print the version and exit.")] = False,
) -> Envelope | None:
    """Declare the options of every command for the help; `run_command` reads them."""
    del folder, json, quiet, verbose, no_input
    if version:
        sys.stdout.write(f"weft {engine_version()}\n")
        raise Exit(OK)
    return None if context.invoked_subcommand else Envelope(command="weft", text=context.get_help())


def main() -> None:
    """Run the command of this process and exit with its code."""
    sys.exit(run_command(sys.argv[1:]))


def run_command(argv: Sequence[str], *, spark: SparkSession | None = None) -> int:
    """Run one command, print its result and return its exit code; `spark` replaces a new session."""
    try:
        call, rest = split_arguments(argv)
    except WeftError as error:
        return _print_result(Envelope.from_error("weft", error), Call(json="--json" in argv))
    call = replace(call, spark=spark)
    # The document of a command that fails before it runs needs a name too.
    name = next((word for word in rest if not word.startswith("-")), "weft").removesuffix("-record")
    try:
        with _without_lost_calls():
            result: Any = app(rest, prog_name="weft", standalone_mode=False, obj=call)
    except WeftError as error:
        result = Envelope.from_error(name, error, getattr(error, "data", None))
    except KeyboardInterrupt:
        result = INTERRUPTED
    except Exception as error:  # noqa: BLE001  # a program that reads JSON gets a document in any case
        if hasattr(error, "format_message"):  # an error of typer about the arguments
            return _report_usage(name, error, call)
        result = _report_bug(name, error)
    if result == INTERRUPTED:  # typer returns the code of an interrupt that it caught itself
        result = Envelope(command=name, exit_code=INTERRUPTED)
    if isinstance(result, Envelope):
        return _print_result(result, call)
    return int(result or OK)


@contextmanager
def _without_lost_calls() -> Iterator[None]:
    """Hide the traceback that py4j logs when the JVM ends during a call: the command reports it with a code."""

    def is_news(record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith("Exception while sending command")

    root = logging.getLogger()
    root.addFilter(is_news)
    try:
        yield
    finally:
        root.removeFilter(is_news)


def split_arguments(argv: Sequence[str]) -> tuple[Call, list[str]]:
    """Return the options of every command, wherever they are, and the other arguments."""
    values: dict[str, Any] = {}
    rest: list[str] = []
    words = iter(argv)
    for word in words:
        if word == "--":  # what follows are arguments, whatever they look like
            rest += ["--", *words]
        elif word in _FLAGS:
            values[_FLAGS[word]] = True
        elif word == "-C":
            folder = next(words, None)
            if folder is None:
                raise WorkspaceError("-C needs a folder", code="W1803", help="write -C DIR")
            values["folder"] = Path(folder)
        else:
            rest.append(word)
    # `test` takes names of scenarios, so `record` has to be a command of its own.
    if rest[:2] == ["test", "record"]:
        rest[:2] = ["test-record"]
    return Call(**values), _fill_counts(rest)


def _fill_counts(words: Sequence[str]) -> list[str]:
    """Return arguments in which an option whose number may be omitted has one.

    >>> _fill_counts(["stream", "status", "--rejects", "job.sql"])
    ['stream', 'status', '--rejects', '20', 'job.sql']
    """
    filled: list[str] = []
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        filled.append(word)
        if word == "--rejects" and not following.isdigit():
            filled.append("20")
    return filled


def _print_result(result: Envelope, call: Call) -> int:
    if call.json:
        sys.stdout.write(result.to_json() + "\n")
        return result.exit_code
    colour = has_colour(sys.stderr)
    for finding in sort_findings(result.diagnostics):
        if finding.severity == "error" or not call.quiet:
            print_stderr(format_finding(finding, colour=colour))
    if result.text:
        sys.stdout.write(result.text.rstrip("\n") + "\n")
        sys.stdout.flush()
    if result.next and not call.quiet:
        print_stderr("next: " + "   or: ".join(result.next))
    return result.exit_code


def _report_bug(name: str, error: Exception) -> Envelope:
    """Return the result of a command that met a bug in Weft; the traceback goes to stderr."""
    print_stderr("".join(traceback.format_exception(error)).rstrip())
    print_stderr("this is a bug in Weft: please report it with the traceback above")
    data = {"error": {"type": type(error).__name__, "message": redact(str(error))}}
    return Envelope(command=name, data=data, exit_code=FAILED)


def _report_usage(name: str, error: Any, call: Call) -> int:
    """Print what is wrong with the arguments of a command; return the exit code."""
    message = error.format_message()
    if call.json:
        result = Envelope(command=name, data={"usage": message}, exit_code=USAGE)
        sys.stdout.write(result.to_json() + "\n")
        return USAGE
    if message.startswith("Usage:"):  # a command without arguments prints its help
        print_stderr(message)
        return USAGE
    context = getattr(error, "ctx", None)
    if context is not None:
        print_stderr(context.get_usage())
    print_stderr(f"error: {message}")
    return int(getattr(error, "exit_code", FAILED))
