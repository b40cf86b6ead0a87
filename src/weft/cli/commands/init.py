"""``weft init``: a workspace that runs, from a template."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.call import call_of
from weft.cli.envelope import Envelope
from weft.core.names import find_similar, format_list, quote_for_shell
from weft.errors import WorkspaceError

IGNORED = "/.weft/\n/out/\n/scenarios/.snapshots/\n"
_TEMPLATES = files("weft.cli") / "templates"


def init(
    context: typer.Context,
    folder: Annotated[Path | None, typer.Argument(metavar="[DIR]", help="Default: this folder.")] = None,
    *,
    template: Annotated[str, typer.Option("--template", help="fx or orders.")] = "fx",
    force: Annotated[bool, typer.Option("--force", help="Also into a folder that holds files.")] = False,
) -> Envelope:
    """Make a workspace with data, a project and a scenario that run as they stand."""
    from weft.pipelines.model.schemas import export

    known = templates()
    if template not in known:
        close = find_similar(template, known, most=1)
        raise WorkspaceError(
            f"there is no template {template!r}",
            code="W1805",
            help=f"did you mean {close[0]!r}?" if close else f"templates are {format_list(known)}",
        )
    start = call_of(context).start
    root = (start / folder if folder is not None else start).resolve()
    texts = dict(contents(template))
    _check(root, texts, force=force)
    try:
        for path, text in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        export(root / ".weft" / "schema")
    except OSError as cause:
        raise WorkspaceError(
            f"{root} cannot be written: {cause.strerror}", code="W1804", help="name another folder"
        ) from cause
    project = next(p for p in texts if p.startswith("projects/")).removeprefix("projects/")
    name = project.removesuffix(".yml")
    where = "" if root == Path.cwd() else f"-C {quote_for_shell(root)} "
    data = {"root": str(root), "template": template, "files": list(texts)}
    return Envelope(
        command="init",
        data=data,
        text="\n".join([f"{root}", *(f"  {path}" for path in texts)]),
        next=(f"weft {where}validate", f"weft {where}run {quote_for_shell(name)} -p 2026-01"),
    )


def templates() -> tuple[str, ...]:
    """Return the names of the templates."""
    return tuple(
        sorted(entry.name for entry in _TEMPLATES.iterdir() if entry.is_dir() and entry.name[0] != "_")
    )


def contents(template: str) -> Iterator[tuple[str, str]]:
    """Yield the files of a workspace from a template: path and text, each path once."""
    yield ".gitignore", IGNORED
    yield from _below(_TEMPLATES / template, "")


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            yield from _below(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")


def _check(root: Path, texts: dict[str, str], *, force: bool) -> None:
    if root.exists() and not root.is_dir():
        raise WorkspaceError(f"{root} is no folder", code="W1804", help="name a folder")
    if force or not root.exists():
        return
    held = sorted(p.name for p in root.iterdir() if p.name != ".git")
    if held:
        clash = [path for path in texts if (root / path).exists()]
        what = f"; it would overwrite {format_list(clash)}" if clash else ""
        raise WorkspaceError(
            f"{root} is not empty: it holds {format_list(held)}{what}",
            code="W1804",
            help="name another folder, or `--force` writes there nevertheless",
        )
