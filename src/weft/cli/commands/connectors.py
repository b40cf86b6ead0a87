"""``weft connectors``: the jars that Spark needs for Kafka and Avro."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option, Typer

from weft.cli.envelope import Envelope
from weft.core.names import format_table

app = Typer(help="Install the Spark connectors for Kafka and Avro.", no_args_is_help=True)


@app.command("list")
def ls() -> Envelope:
    """List the connectors and their installed versions."""
    from weft.streams.run.connectors import CONNECTORS, find_installed

    connectors = [find_installed(connector) for connector in CONNECTORS]
    rows = [(c.name, c.version or "not installed", c.what) for c in connectors]
    return Envelope(
        command="connectors",
        data={"connectors": [c.to_dict() for c in connectors]},
        text=format_table(("CONNECTOR", "VERSION", "FOR"), rows),
        next=tuple(f"weft connectors install {c.name}" for c in connectors if not c.version),
    )


@app.command("install")
def install(
    name: Annotated[str, Argument(metavar="CONNECTOR", help="kafka or avro.")],
    *,
    offline: Annotated[
        Path | None, Option("--offline", metavar="DIR", help="Take the jars from this folder, not from Maven.")
    ] = None,
) -> Envelope:
    """Download a connector for the installed version of Spark."""
    from weft.streams.run.connectors import install_connector

    connector, findings = install_connector(name, offline=offline)
    return Envelope(
        command="connectors",
        data=connector.to_dict(),
        diagnostics=findings,
        text=f"installed {connector.name} {connector.version} for Spark {connector.spark} in {connector.folder}",
    )
