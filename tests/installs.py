"""Fresh environments for tests: the wheel of this source tree, installed as a user installs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Marks in pip's output for "the registry cannot be reached", as opposed to "the wheel is wrong".
_OFFLINE = (
    "NewConnectionError",
    "ConnectTimeoutError",
    "Temporary failure in name resolution",
    "ProxyError",
    "error sending request",  # of uv
)
_KEPT = ("HOME", "JAVA_HOME", "LANG", "PATH", "SPARK_SUBMIT_OPTS", "TMPDIR")


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and how programs are run in it; uv makes it where there is one."""

    folder: Path
    wheel: Path

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    def install(self, *wanted: str) -> None:
        """Install packages; compiled files are left for the modules that are imported."""
        if shutil.which("uv"):
            _run_or_stop(["uv", "pip", "install", "--quiet", "--python", str(self.programs / "python"), *wanted])
        else:
            pip = [str(self.programs / "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
            _run_or_stop([*pip, "--disable-pip-version-check", *wanted])

    def add(self, *wanted: str) -> None:
        """Install packages by the uv of the development tools; pip does so where uv cannot reach its registry."""
        uv = [str(Path(sys.executable).parent / "uv"), "pip", "install", "--quiet", "--system-certs"]
        add = [*uv, "--python", str(self.programs / "python"), *wanted]
        if not Path(uv[0]).exists() or subprocess.run(add, capture_output=True, check=False).returncode:
            self.install(*wanted)

    def packages(self) -> set[str]:
        """Return the names of all that is installed."""
        code = "from importlib.metadata import distributions; print(*(d.metadata['Name'] for d in distributions()))"
        return set(self.run("python", "-c", code).stdout.lower().split())

    def copy(self, folder: Path) -> Environment:
        """Return a copy whose programs run its own Python; packages are shared until one changes."""

        def link_packages(source: str, target: str) -> None:
            is_package = "site-packages" in Path(source).parts
            (os.link if is_package else shutil.copy2)(source, target)

        shutil.copytree(self.folder, folder, symlinks=True, copy_function=link_packages)
        mine, its = (str(place / "bin" / "python").encode() for place in (self.folder, folder))
        for program in (folder / "bin").iterdir():
            text = b"" if program.is_symlink() else program.read_bytes()
            if text.startswith(b"#!"):
                program.write_bytes(text.replace(mine, its, 1))
        return Environment(folder, self.wheel)

    def with_extra(self, extra: str, folder: Path) -> Environment:
        """Return a copy of this environment to which an extra was added."""
        copy = self.copy(folder)
        copy.add(f"weft[{extra}] @ {self.wheel.as_uri()}")
        return copy

    def run(
        self, program: str, *words: str | Path, first: Path | None = None, fails: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment with none of the settings of the tests but those of the JVM.

        PATH starts with `first`, or with the environment as after `activate`.
        """
        settings = {name: os.environ[name] for name in _KEPT if name in os.environ}
        path = os.pathsep.join(map(str, (first or self.programs, settings["PATH"])))
        # Started through Python: the first line of a program in a deep folder is longer than systems read.
        start = [self.programs / "python"] + ([] if program == "python" else ["-m", program])
        ran = subprocess.run(
            [*start, *words],
            env=settings | {"PATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=1800,  # only a process that hangs needs it
        )
        assert fails or ran.returncode == 0, (program, words, ran.stdout[-2000:], ran.stderr[-4000:])
        return ran


def build_wheel(folder: Path) -> Path:
    """Return the wheel of this source tree, built in `folder`."""
    if shutil.which("uv"):  # its environments have no pip
        _run_or_stop(["uv", "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT)])
    else:
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
        _run_or_stop([*pip, "-w", str(folder), str(ROOT)])
    (wheel,) = folder.glob("weft-*.whl")
    return wheel


def build_sdist(folder: Path) -> Path:
    """Return the source distribution of this source tree, built in `folder`."""
    if shutil.which("uv"):
        _run_or_stop(["uv", "build", "--quiet", "--sdist", "--out-dir", str(folder), str(ROOT)])
    else:
        _run_or_stop([sys.executable, "-m", "build", "--sdist", "--outdir", str(folder), str(ROOT)])
    (sdist,) = folder.glob("weft-*.tar.gz")
    return sdist


def empty_environment(folder: Path, wheel: Path) -> Environment:
    """Return an environment that holds nothing but what installs."""
    venv.create(folder, with_pip=shutil.which("uv") is None, symlinks=True)
    return Environment(folder, wheel)


def _run_or_stop(command: list[str]) -> None:
    """Run pip; skip where its registry cannot be reached, which in CI is a failure."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        return
    output = (ran.stdout + ran.stderr)[-3000:]
    if os.environ.get("CI") != "true" and any(mark in output for mark in _OFFLINE):
        pytest.skip("the package registry cannot be reached, and this test installs Weft from nothing")
    pytest.fail(f"{' '.join(map(str, command))} failed:\n{output}", pytrace=False)
