"""Pages that a reader types: every block goes into a terminal, to Python or into a file, in order, and is compared.

Blocks of a page, and nothing else is allowed in one:

- ``sh``: typed into a shell.  It must succeed, unless the output below it shows an ``error[``.
- ``python``: typed into Python, which a ``sh`` block before it started.
- any language with ``title="path"``: the content of a file.
- ``text`` right below one of them: all that it prints.  What differs from run to run is masked on both sides.
"""

from __future__ import annotations

import contextlib
import getpass
import io
import os
import pty
import re
import select
import shlex
import struct
import subprocess
import sys
import termios
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path
from typing import TYPE_CHECKING, Self

from weft.cli.main import run_command
from weft.errors import WeftError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="(?P<path>[^"]+)"')
SECONDS = 900  # only a program that hangs needs it

MASKS = (
    (re.compile(r" *(?<![\w.])\d+(\.\d+)? s\b"), " N s"),
    (re.compile(r"(?<!:)\b\d+:\d\d\b(?!:)"), "N:NN"),
    (re.compile(r"\b\d+\.\d+ (MB|GB)\b"), r"N \1"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?\b"), "RUN"),
    (re.compile(r"\bsnapshot [0-9a-f]{8}\b"), "snapshot N"),
    (re.compile(r"\b20\d\d-\d\d-\d\d[T ](\d\d:\d\d:\d\d\.\d+Z?|N:NN)\b"), "NOW"),
    (re.compile(r"\bpart-[0-9a-f-]{8,}\S*"), "PART"),
    (re.compile(r"\b\d+\.\d+\.\d+\b"), "VERSION"),
    (re.compile(r"\b(pid|process) \d+\b"), r"\1 N"),
)
"""What differs from run to run."""

_NOISE = re.compile(
    r"^(WARNING: Using incubator modules|Using Spark's default log4j|Setting default log level|"
    r"To adjust logging level|Setting Spark log level|\d\d/\d\d/\d\d \d\d:\d\d:\d\d WARN |Python 3\.|Type \"help\")"
)
"""What Spark and Python say when they start; the pages say that they do."""


@dataclass(frozen=True)
class Step:
    """A block that is typed or saved, and what must appear."""

    line: int
    kind: str
    body: str
    path: str | None
    shown: str | None

    def is_right(self, *, succeeded: bool) -> bool:
        """Return whether it may end like this: it fails where an error is shown; an empty output is not written yet."""
        return self.shown == "" or succeeded == (self.shown is None or "error[" not in self.shown)


def steps(text: str) -> list[Step]:
    """Return the blocks of a page in order."""
    made: list[Step] = []
    last = 0
    for found in _FENCE.finditer(text):
        info, body = found["info"], found["body"]
        line = text.count("\n", 0, found.start()) + 1
        kind = info.split(" ", 1)[0]
        title = _TITLE.search(info)
        if info == "text":
            is_below = bool(made) and made[-1].shown is None and not text[last : found.start()].strip()
            assert is_below, f"line {line}: this output is below no block that prints it"
            made[-1] = Step(made[-1].line, made[-1].kind, made[-1].body, made[-1].path, body)
        else:
            assert title or info in ("sh", "python"), f"line {line}: nobody runs a block marked {info!r}"
            made.append(Step(line, "file" if title else kind, body, title["path"] if title else None, None))
        last = found.end()
    return made


class Reader(ABC):
    """Who types a page, in a folder; `instead` has what the words of a page are on this machine."""

    def __init__(self, folder: Path, instead: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.instead = instead or {}

    @abstractmethod
    def type(self, step: Step) -> str:
        """Type a block and return what appears."""

    def here(self, text: str) -> str:
        """Return a text of the page as it is on this machine."""
        for word, mine in self.instead.items():
            text = text.replace(word, mine)
        return text

    def save(self, step: Step) -> None:
        """Write a file of the page."""
        assert step.path is not None
        file = self.folder / step.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.here(step.body), encoding="utf-8")

    def seen(self, text: str) -> str:
        """Return what a reader of the page would see: without bars that were erased, colours, frames of a traceback."""
        for word, mine in self.instead.items():
            text = text.replace(mine, word)
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace(str(self.folder), "/home/ada/work")
        text = text.replace(f" by {getpass.getuser()},", " by ada,")
        lines = [line.rstrip("\r").rsplit("\r", 1)[-1].rstrip() for line in text.split("\n")]
        return "".join(line + "\n" for line in _without_frames(lines)).strip("\n") + "\n"


def follow(page: Path, reader: Reader, *, rewrite: bool = False) -> None:
    """Type a page in order; each block must print what stands below it, or is written there."""
    for number, step in enumerate(steps(page.read_text(encoding="utf-8"))):
        if step.kind == "file":
            assert step.shown is None, f"{page.name}:{step.line}: a file prints nothing"
            reader.save(step)
            continue
        printed = reader.seen(reader.type(step))
        if step.shown is None or mask(printed) == mask(step.shown):
            continue
        assert rewrite, f"{page.name}:{step.line} prints\n{printed}\nand the page shows\n{step.shown}"
        _rewrite(page, number, printed)


def _rewrite(page: Path, number: int, printed: str) -> None:
    """Replace the output of the block with this number, counted from 0 without outputs."""
    text = page.read_text(encoding="utf-8")
    blocks = list(_FENCE.finditer(text))
    outputs = [found for found in blocks if found["info"] == "text"]
    typed = [found for found in blocks if found["info"] != "text"]
    shown = next(found for found in outputs if found.start() > typed[number].start())
    page.write_text(text[: shown.start("body")] + printed + text[shown.end("body") :], encoding="utf-8")


def mask(text: str) -> str:
    """Replace what differs from run to run."""
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return text


def _without_frames(lines: Iterable[str]) -> Iterator[str]:
    in_traceback = False
    for line in lines:
        if line.startswith("Traceback (most recent call last)"):
            in_traceback = True
        elif in_traceback and (not line or line.startswith(" ")):
            continue
        elif not _NOISE.match(line):
            in_traceback = False
            yield line


class Terminal(Reader):
    """A shell in a terminal, and whatever a page starts in it; each line is typed when the one before it is done."""

    _SHELL, _PYTHON, _MORE = "\x1e$", "\x1e>", "\x1e+"

    def __init__(self, folder: Path, env: dict[str, str], startup: Path) -> None:
        super().__init__(folder)
        # Prompts that no program prints; without readline, Python echoes nothing.
        startup.write_text(
            f"import sys\nsys.ps1, sys.ps2 = {self._PYTHON!r}, {self._MORE!r}\ndel sys.__interactivehook__, sys\n",
            encoding="utf-8",
        )
        self._main, inner = pty.openpty()
        settings = termios.tcgetattr(inner)
        settings[1] &= ~termios.OPOST
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(inner, termios.TCSANOW, settings)
        ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 120, 0, 0))
        quiet = {"PS1": self._SHELL, "PS2": self._MORE, "VIRTUAL_ENV_DISABLE_PROMPT": "1", "TERM": "dumb"}
        python = {"PYTHONSTARTUP": str(startup), "PYTHON_BASIC_REPL": "1"}
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "--noediting", "-i"],
            cwd=folder,
            env=env | quiet | python,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
        )
        os.close(inner)
        self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(30)
        os.close(self._main)

    def type(self, step: Step) -> str:
        """Type a block and return what appears; a command of the shell must succeed unless an error is shown."""
        printed, prompt = "", ""
        for line in step.body.splitlines():
            said, prompt = self._enter(line)
            printed += said
        if step.kind == "sh" and prompt == self._SHELL:
            succeeded = self._enter("echo $?")[0].strip() == "0"
            assert step.is_right(succeeded=succeeded), f"line {step.line}: {step.body}prints\n{printed[-4000:]}"
        if step.kind == "python":
            assert prompt in (self._PYTHON, self._SHELL), f"line {step.line}: Python waits for more of\n{step.body}"
        return printed

    def _enter(self, line: str) -> tuple[str, str]:
        os.write(self._main, f"{line}\n".encode())
        return self._read()

    def _read(self) -> tuple[str, str]:
        """Return what appears before the next prompt, and the prompt."""
        got = b""
        deadline = time.monotonic() + SECONDS
        while True:
            text = got.decode(errors="replace")
            for prompt in (self._SHELL, self._PYTHON, self._MORE):
                if text.endswith(prompt):
                    return text.removesuffix(prompt), prompt
            left = deadline - time.monotonic()
            assert left > 0, f"no prompt after {SECONDS} s:\n{text[-4000:]}"
            if select.select([self._main], [], [], left)[0]:
                got += os.read(self._main, 65536)


def path_with_python() -> str:
    """Return a PATH on which `python3` is the one that runs the tests."""
    return os.pathsep.join((str(Path(sys.executable).resolve().parent), os.environ["PATH"]))


class InProcess(Reader):
    """This process: Python blocks share their names and `spark`, `weft` runs in that session, other commands in a shell."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        super().__init__(folder)
        self._spark = spark
        self._names: dict[str, object] = {"spark": spark}

    def type(self, step: Step) -> str:
        """Run a block and return what appears; it may fail only where an error is shown."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), contextlib.chdir(self.folder):
            done = self._run_python(step.body) if step.kind == "python" else self._run_commands(step.body, printed)
        assert step.is_right(succeeded=done), f"line {step.line}: {step.body}prints\n{printed.getvalue()[-4000:]}"
        return printed.getvalue()

    def _run_python(self, body: str) -> bool:
        try:
            exec(compile(body, "<page>", "exec", dont_inherit=True), self._names)  # noqa: S102
        except WeftError as error:
            print(f"{type(error).__module__}.{type(error).__qualname__}: {error}")  # noqa: T201
            return False
        return True

    def _run_commands(self, body: str, printed: io.StringIO) -> bool:
        code = 0
        for command in _commands(body):
            words = shlex.split(command, comments=True)
            if words[:1] == ["weft"]:
                code = run_command(words[1:], spark=self._spark)
                continue
            ran = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            printed.write(ran.stdout)
            code = ran.returncode
        return code == 0


class OwnProcesses(Reader):
    """A shell for each block, with an environment of its own; programs are those of PATH."""

    def __init__(self, folder: Path, env: Mapping[str, str], instead: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, instead)
        self._env = {**env}

    def type(self, step: Step) -> str:
        """Run a block and return what appears; all its commands must succeed, unless an error is shown."""
        assert step.kind == "sh", f"line {step.line}: this page has no Python that is typed"
        ran = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", self.here(step.body)],
            cwd=self.folder,
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        assert step.is_right(succeeded=ran.returncode == 0), (
            f"line {step.line}: {step.body}prints\n{ran.stdout[-6000:]}"
        )
        return ran.stdout


def _commands(body: str) -> Iterator[str]:
    """Yield the commands of a block; one may go over several lines that end in a backslash."""
    for command in re.split(r"(?<!\\)\n", body):
        if command.strip():
            yield command
