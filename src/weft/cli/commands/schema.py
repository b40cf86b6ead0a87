"""``weft schema``: JSON Schemas of the files of a workspace, for editors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.call import call_of
from weft.cli.envelope import Envelope
from weft.core.names import find_similar, format_list
from weft.errors import WorkspaceError

app = typer.Typer(help="Show or write the JSON Schemas of workspace files.", no_args_is_help=True)


@app.command("export")
def export(
    context: typer.Context,
    folder: Annotated[Path | None, typer.Argument(help="Default: .weft/schema of the workspace.")] = None,
    *,
    documents: Annotated[bool, typer.Option("--documents", help="Also those of what --json prints.")] = False,
) -> Envelope:
    """Write the schema of every kind of file."""
    from weft.pipelines.model.schemas import export as exported

    target = folder or call_of(context).root() / ".weft" / "schema"
    try:
        files = exported(target)
        if documents:
            from weft.cli.documents import export_documents

            files = (*files, *export_documents(target / "documents"))
    except OSError as cause:
        raise WorkspaceError(
            f"{target} cannot be written: {cause.strerror}", code="W1803", help="name another folder"
        ) from cause
    names = [str(file) for file in files]
    return Envelope(command="schema", data={"files": names}, text="\n".join(names))


@app.command("show")
def show(kind: Annotated[str, typer.Argument(help="project, dataset, resolver, ...")]) -> Envelope:
    """Print the schema of one kind of file."""
    from weft.pipelines.model.schemas import json_schema
    from weft.pipelines.model.sugar import KINDS

    if kind not in KINDS:
        close = find_similar(kind, KINDS, most=1)
        raise WorkspaceError(
            f"there is no kind of file {kind!r}",
            code="W1802",
            help=f"did you mean {close[0]!r}?" if close else f"kinds are {format_list(KINDS)}",
        )
    schema = json_schema(kind)
    text = json.dumps(schema, indent=2, ensure_ascii=False)
    return Envelope(command="schema", data={"kind": kind, "schema": schema}, text=text)
