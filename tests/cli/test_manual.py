"""The manual page and shell completion: both follow from the commands; `make golden` writes the page."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from weft.cli.main import app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "weft.1"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ENVIRONMENT = {
    "JAVA_HOME": "The Java that Spark starts, version 17 or newer; without it the java of the PATH.",
    "NO_COLOR": "Print no colours.",
    "PYSPARK_PYTHON": "The Python of Spark's workers; without it the one that runs weft.",
    "SPARK_REMOTE": "Address of a Spark Connect server, for example sc://host:15002; without it Spark runs on this machine.",
}
FILES = {
    "weft.yml": "Settings of a workspace; its folder is the workspace.",
    ".weft/": "What Weft writes: the store, checkpoints, logs, and JSON Schemas for editors.",
}
EXAMPLES = {
    "weft init demo && cd demo": "Create a workspace that runs.",
    "weft validate": "Report every error in its files.",
    "weft run fx_reporting -p 2026-01": "Run a project for January 2026.",
    "weft --install-completion": "Complete commands and options in the current shell.",
}


def roff(text: str) -> str:
    """Return text for a manual page: dashes that can be copied, no line that begins with a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.MULTILINE)


def pairs(entries: dict[str, str]) -> Iterator[str]:
    for name, text in entries.items():
        yield from (".TP", f".B {roff(name)}", roff(text))


def label(param: Any) -> str:
    """Return the word that stands for the value of an option or argument."""
    return str(param.metavar or param.name.upper()) + ("..." if param.nargs == -1 else "")


def parameters(command: Any, kind: str) -> Iterator[str]:
    """Yield the entries of the options or arguments of a command."""
    for param in command.params:
        if param.param_type_name != kind or param.hidden or "--help" in param.opts:
            continue
        name = label(param) if kind == "argument" else ", ".join((*param.opts, *param.secondary_opts))
        value = "" if kind == "argument" or param.is_flag else f" {label(param)}"
        yield from (".TP", f"\\fB{roff(name)}\\fR{roff(value)}", roff(param.help or ""))


def usage(words: str, command: Any) -> str:
    """Return the first line of a command: its words, and the names of its arguments."""
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    shown = " ".join(["[options]", *(label(a) if a.required else f"[{label(a)}]" for a in arguments)])
    return f"\\fB{roff(words)}\\fR {roff(shown)}"


def commands(words: str, group: Any) -> Iterator[tuple[str, Any]]:
    """Yield every command below a group, with the words that call it."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from commands(f"{words} {name}", command)
        else:
            yield f"{words} {name}", command


def exit_codes() -> dict[str, str]:
    """Return the exit codes and their meaning from the page on the command line."""
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8").partition("## Exit codes")[2].partition("\n## ")[0]
    return {code: text.replace("`", "") for code, text in re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)}


def manual() -> str:
    """Return the manual page of all commands."""
    root: Any = get_command(app)
    lines = [
        '.\\" Written by `make golden` from the commands themselves.',
        f'.TH WEFT 1 "" "Weft {PROJECT["project"]["version"]}" "User Commands"',
        ".SH NAME",
        "weft \\- temporal joins and pipelines on Spark",
        ".SH SYNOPSIS",
        "\\fBweft\\fR [options] \\fIcommand\\fR [arguments]",
        ".SH DESCRIPTION",
        roff(root.help.partition(". ")[2].partition("\f")[0]),
        "The options below may be written before or after the name of a command.",
        ".SH OPTIONS",
        *parameters(root, "option"),
        ".SH COMMANDS",
    ]
    for words, command in commands("weft", root):
        text = " ".join((command.help or "").split())
        lines += [".SS", usage(words, command), ".PP", roff(text)]
        lines += [*parameters(command, "argument"), *parameters(command, "option")]
    for title, entries in (
        ("EXIT STATUS", exit_codes()),
        ("ENVIRONMENT", ENVIRONMENT),
        ("FILES", FILES),
        ("EXAMPLES", EXAMPLES),
    ):
        lines += [f".SH {title}", *pairs(entries)]
    return "\n".join(lines) + "\n"


@pytest.mark.golden
def test_the_manual_page_has_every_command(pytestconfig: pytest.Config) -> None:
    wanted = manual()
    if pytestconfig.getoption("--rewrite-golden"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert wanted == PAGE.read_text(encoding="utf-8"), f"{PAGE} is old: `make golden` writes it"
    for words in ("weft run", "weft stream redrive", "\\-\\-upgrade\\-store", "\\-\\-install\\-completion", "130"):
        assert words in wanted


def test_every_option_and_argument_of_the_manual_page_is_explained() -> None:
    lines = manual().splitlines()
    bare = [lines[at + 1] for at, line in enumerate(lines) if line == ".TP" and not lines[at + 2].strip()]
    assert not bare


def test_text_of_a_manual_page_is_never_a_request() -> None:
    assert roff(".weft \\ --json") == "\\&.weft \\e \\-\\-json"
    assert not [line for line in manual().splitlines() if re.match(r"[.'](?!(TH|SH|SS|TP|PP|B)\b|\\\")", line)]


def test_the_formatter_of_manual_pages_has_nothing_to_say() -> None:
    groff = shutil.which("groff")
    if groff is None:  # the rules above hold without it
        return
    command = [groff, "-man", "-Tutf8", "-ww", str(PAGE)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    assert "weft run" in ran.stdout


def complete(words: str, at: int, shell: str = "bash") -> list[str]:
    """Return what a shell would offer for a word of a command that is being typed."""
    settings = {"_WEFT_COMPLETE": f"complete_{shell}", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    zsh = {"_TYPER_COMPLETE_ARGS": words}
    ran = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['weft']; from weft.cli.main import main; main()"],
        env=os.environ | settings | zsh,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    return ran.stdout.split()


def test_a_shell_completes_commands_options_and_templates() -> None:
    assert complete("weft r", 1) == ["run", "rerun", "runs", "resolver"]
    assert complete("weft stream st", 2) == ["start", "status", "stop"]
    assert "--known-at" in complete("weft -C fx run --", 4)
    assert complete("weft init --template f", 3) == ["features", "fx"]


def test_completion_is_installed_for_the_shell_that_asks(tmp_path: Path) -> None:
    install = f"{shlex.quote(sys.executable)} -m weft --install-completion; true"
    subprocess.run(["bash", "-c", install], env=os.environ | {"HOME": str(tmp_path)}, capture_output=True, check=True)
    show = f"source {shlex.quote(str(tmp_path))}/.bashrc; complete -p weft"
    ran = subprocess.run(["bash", "-c", show], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["complete", "-o", "default", "-F", "_weft_completion", "weft"]
