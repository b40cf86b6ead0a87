"""``weft connectors``: jars of Spark for Kafka and Avro, which do not come with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.envelope import Envelope
from weft.cli.terminal import table

app = typer.Typer(help="Connectors of Spark for Kafka and Avro.", no_args_is_help=True)


@app.command("list")
def ls() -> Envelope:
    """List the connectors, and which are installed."""
    from weft.streams.run.connectors import CONNECTORS, find_installed

    found = [find_installed(connector) for connector in CONNECTORS]
    rows = [(one.name, one.version or "not installed", one.what) for one in found]
    missing = tuple(f"weft connectors install {one.name}" for one in found if not one.version)
    return Envelope(
        command="connectors",
        data={"connectors": [one.to_dict() for one in found]},
        text=table(("CONNECTOR", "VERSION", "FOR"), rows),
        next=missing,
    )


@app.command("install")
def install(
    name: Annotated[str, typer.Argument(metavar="CONNECTOR", help="kafka or avro.")],
    *,
    offline: Annotated[
        Path | None, typer.Option("--offline", metavar="DIR", help="Take the jars from this folder.")
    ] = None,
) -> Envelope:
    """Fetch a connector with Maven, for the installed version of Spark."""
    from weft.streams.run.connectors import install_connector as put

    found, told = put(name, offline=offline)
    return Envelope(
        command="connectors",
        data=found.to_dict(),
        diagnostics=told,
        text=f"{found.name} {found.version} for Spark {found.spark} is in {found.folder}",
    )
