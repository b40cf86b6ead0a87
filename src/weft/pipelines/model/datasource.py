"""Datasources of a workspace: what is checked about their files, and secrets wherever a file may hold one."""

from __future__ import annotations

import re
from dataclasses import replace

from weft.errors import Severity
from weft.io.datasource import DataSource
from weft.pipelines.model.entries import Entries, Findings, read_identity
from weft.pipelines.model.yaml_nodes import Item
from weft.redaction import has_secret, is_placeholder, is_secret_name

_REFERENCE = re.compile(r"(?:env|file):\S")
_OUTSIDE = "keep it outside: `credential_ref: env:NAME` or `credential_ref: file:path`"


def check_datasource(source: DataSource, entries: Entries) -> DataSource:
    """Return a datasource with its id and name; secrets in its options are noted."""
    id, name = read_identity(entries, "datasource")
    # What the store holds was accepted when it was written, and stays readable.
    for item in entries.pairs("options") if entries.node.text else ():
        check_secret("option", item, _OUTSIDE, entries.findings)
    check_reference(entries, "credential_ref")
    return replace(source, id=id, name=name)


def check_secret(what: str, item: Item, help: str, findings: Findings, severity: Severity = "error") -> None:
    """Note a secret that an entry holds, by its name or inside its value."""
    name, key, value = item
    if value.kind != "scalar":
        inner = value.pairs() if value.is_mapping else (Item(name, key, part) for part in value.items())
        for part in inner:
            check_secret(what, part, help, findings, severity)
    elif is_secret_name(name):
        if not is_placeholder(str(value.value)):
            findings.add(
                "W1015", f"{what} {name!r} looks like a secret", key.place(), help, severity=severity
            )
    elif has_secret(name, str(value.value)):
        findings.add("W1015", f"{what} {name!r} holds a secret", value.place(), help, severity=severity)


def check_reference(entries: Entries, name: str) -> None:
    """Note what is written instead of a reference to a secret: it may be the secret itself."""
    said = entries.text_or_none(name)
    if said is not None and entries.node.text and _REFERENCE.match(said.strip()) is None:
        entries.find("W1015", f"{name!r} must be env:NAME or file:path", name, "keep the secret outside")
