"""``weft schema``: JSON Schemas of the files of a workspace, for editors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option, Typer

from weft.cli.call import get_call, report_unwritable, unknown_name
from weft.cli.envelope import Envelope

app = Typer(help="Print or write the JSON Schemas of workspace files.", no_args_is_help=True)


@app.command("export")
def export(
    context: Context,
    folder: Annotated[
        Path | None, Argument(metavar="DIR", help="Folder to write to; .weft/schema of the workspace by default.")
    ] = None,
    *,
    documents: Annotated[bool, Option("--documents", help="Write the schemas of --json documents too.")] = False,
) -> Envelope:
    """Write the schema of every kind of workspace file."""
    from weft.pipelines.model.schemas import export as export_schemas

    target = folder or get_call(context).root() / ".weft" / "schema"
    with report_unwritable(target, help="choose another folder"):
        files = export_schemas(target)
        if documents:
            from weft.cli.documents import export_documents

            files = (*files, *export_documents(target / "documents"))
    names = [str(file) for file in files]
    return Envelope(command="schema", data={"files": names}, text="\n".join(names))


@app.command("show")
def show(
    kind: Annotated[str, Argument(metavar="KIND", help="Kind of file, for example project, dataset or resolver.")],
) -> Envelope:
    """Print the schema of one kind of workspace file."""
    from weft.pipelines.model.normalize import KINDS
    from weft.pipelines.model.schemas import json_schema

    if kind not in KINDS:
        raise unknown_name("kind of file", kind, KINDS)
    schema = json_schema(kind)
    text = json.dumps(schema, indent=2, ensure_ascii=False)
    return Envelope(command="schema", data={"kind": kind, "schema": schema}, text=text)
