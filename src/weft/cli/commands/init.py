"""``weft init``: create a workspace from a template."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Annotated

from typer import Argument, Context, Option

from weft.cli.call import get_call, report_unwritable, unknown_name
from weft.cli.envelope import Envelope
from weft.core.names import format_list, quote_for_shell
from weft.errors import WorkspaceError

IGNORED = """\
# Everything that Weft writes, except the schemas that editors use.
/.weft/*
!/.weft/schema/
/out/
/scenarios/.snapshots/
__pycache__/
"""
_TEMPLATES = files("weft.cli") / "templates"


def init(
    context: Context,
    folder: Annotated[
        Path | None, Argument(metavar="DIR", help="Folder to create; the current one by default.")
    ] = None,
    *,
    template: Annotated[
        str,
        Option(
            "--template",
            metavar="NAME",
            help="Template: fx, orders, stream, features or python.",
            autocompletion=lambda: list(list_templates()),
        ),
    ] = "fx",
    force: Annotated[bool, Option("--force", help="Write to a folder that is not empty; overwrites files.")] = False,
) -> Envelope:
    """Create a workspace from a template. It has data, a scenario or test, and a README, ready to run."""
    from weft.pipelines.model.schemas import export

    names = list_templates()
    if template not in names:
        raise unknown_name("template", template, names, code="W1805")
    start = get_call(context).start
    root = (start / folder if folder is not None else start).resolve()
    texts = dict(read_template(template))
    _check_folder(root, texts, force=force)
    with report_unwritable(root, help="choose another folder", code="W1804"):
        for path, text in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        if "weft.yml" in texts:
            export(root / ".weft" / "schema")
    return Envelope(
        command="init",
        data={"root": str(root), "template": template, "files": list(texts)},
        text="\n".join([f"{root}", *(f"  {path}" for path in texts)]),
        next=_next_steps(root, texts),
    )


def _next_steps(root: Path, texts: dict[str, str]) -> tuple[str, ...]:
    """Return the commands that try the workspace: those of its projects, of its streams, or its script."""
    workspace_option = "" if root == Path.cwd() else f"-C {quote_for_shell(root)} "
    # Reversed, so that the first file of each folder remains.
    first = {path.split("/", 1)[0]: PurePosixPath(path).stem for path in reversed(texts)}
    if "projects" in first:
        run = f"weft {workspace_option}run {quote_for_shell(first['projects'])} -p 2026-01"
        return (f"weft {workspace_option}validate", run)
    if "streams" in first:
        check = f"weft {workspace_option}stream check {quote_for_shell(first['streams'])}"
        return (check, f"weft {workspace_option}stream run {quote_for_shell(first['streams'])} --final")
    script = next(path for path in texts if path.endswith(".py") and "/" not in path)
    return (f"python {quote_for_shell(script if not workspace_option else root / script)}",)


def list_templates() -> tuple[str, ...]:
    """Return the names of the templates."""
    return tuple(sorted(entry.name for entry in _TEMPLATES.iterdir() if entry.is_dir() and entry.name[0] != "_"))


def read_template(template: str) -> Iterator[tuple[str, str]]:
    """Yield the path and text of each file of a template."""
    yield ".gitignore", IGNORED
    yield from _read_folder(_TEMPLATES / template, "")


def _read_folder(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            yield from _read_folder(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")


def _check_folder(root: Path, texts: dict[str, str], *, force: bool) -> None:
    if root.exists() and not root.is_dir():
        raise WorkspaceError(f"{root} is not a folder", code="W1804", help="choose a folder")
    if force or not root.exists():
        return
    entries = sorted(p.name for p in root.iterdir() if p.name != ".git")
    if entries:
        clashes = [path for path in texts if (root / path).exists()]
        loss = f"; `weft init` would overwrite {format_list(clashes)}" if clashes else ""
        raise WorkspaceError(
            f"{root} is not empty: it contains {format_list(entries)}{loss}",
            code="W1804",
            help="choose another folder, or write to this one with --force",
        )
