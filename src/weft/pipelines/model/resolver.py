"""Datasources and resolvers: ordered rules that locate the data of a table for a period, and checks for secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weft.core.fingerprint import fingerprint
from weft.core.frozen import EMPTY, FrozenMap
from weft.core.source import NO_SOURCES
from weft.core.spec import ALWAYS, REQUIRED, Limits, Locations, Positive, ReadAs, Spec, Text, yaml_key
from weft.errors import Severity
from weft.io.datasource import DataSource, EntityStatus
from weft.io.location import ANY_LEVEL
from weft.pipelines.model.entries import Entries, Findings, expression_key, read_identity
from weft.pipelines.model.values import LocatedText
from weft.pipelines.model.yaml_nodes import Item, inherit_name, named_value
from weft.redaction import has_secret, is_placeholder, is_secret_name

_REFERENCE = re.compile(r"(?:env|file):\S")  # the only forms in which a secret can be named
_OUTSIDE = "store it outside the file: `credential_ref: env:NAME` or `credential_ref: file:path`"
_IN_SERVICE = "store it outside the file: `auth: env:NAME` or `auth: file:path` sets the Authorization header"
_DATASOURCE = (("datasource_id", "datasource"),)


def check_datasource(source: DataSource, entries: Entries) -> DataSource:
    """Return a datasource with its id and name; report secrets in its options."""
    id, name = read_identity(entries, "datasource")
    # What the store contains was accepted when it was saved, and must stay readable.
    for item in entries.pairs("options") if entries.node.text else ():
        check_secret("option", item, _OUTSIDE, entries.findings)
    check_reference(entries, "credential_ref")
    return replace(source, id=id, name=name)


def check_secret(what: str, item: Item, help: str, findings: Findings, severity: Severity = "error") -> None:
    """Report a secret in an entry, recognized by its name or its value."""
    name, key, value = item
    if value.kind != "scalar":
        # Entries of a list have no names of their own: they are judged by the name of the list.
        inner = inherit_name(name, value) if value.is_mapping else (Item(name, key, part) for part in value.items())
        named = named_value(value.pairs()) if value.is_mapping else None
        for part in (*inner, *((named,) if named else ())):
            check_secret(what, part, help, findings, severity)
    elif is_secret_name(name):
        if not is_placeholder(str(value.value)):
            findings.add("W1015", f"{what} {name!r} looks like a secret", key.place(), help, severity=severity)
    elif has_secret(name, str(value.value)):
        findings.add("W1015", f"{what} {name!r} contains a secret", value.place(), help, severity=severity)


def check_reference(entries: Entries, name: str) -> None:
    """Report a value that is not a reference to a secret: it may be the secret itself."""
    text = entries.located(name)
    if text is not None and entries.node.text and _REFERENCE.match(text.text.strip()) is None:
        entries.report("W1015", f"{name!r} must be env:NAME or file:path", name, "store the secret outside the file")


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStrategy(Spec):
    """A file, folder or glob below the prefix of a datasource."""

    SHORT: ClassVar = _DATASOURCE
    type: Literal["path"] = field(default="path", metadata=REQUIRED)
    datasource: Text = field(metadata=yaml_key("datasource_id"))
    path: Text
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStrategy(Spec):
    """A table of a database or catalog."""

    SHORT: ClassVar = _DATASOURCE
    type: Literal["table"] = field(default="table", metadata=REQUIRED)
    datasource: Text = field(metadata=yaml_key("datasource_id"))
    table: Text
    schema: Text = ""
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)


# As written: YAML would turn the parameter `month: 01` into the number 1.
def _texts(_value: Any, written: Any, _reader: Any) -> FrozenMap[str, str]:
    """Return a mapping with each value as written."""
    return FrozenMap({item.name: str(item.value.value) for item in written.node.pairs()})


Texts = Annotated[FrozenMap[str, str], ReadAs(dict[str, str | int | bool], _texts)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogStrategy(Spec):
    """A service that locates the data.

    `auth` names a credential and never contains one.
    """

    SHORT: ClassVar = _DATASOURCE
    type: Literal["catalog"] = field(default="catalog", metadata=REQUIRED)
    endpoint: Text
    method: Literal["GET", "POST"] = field(default="GET", metadata=ALWAYS)
    auth: Text | None = None
    params: Texts = EMPTY
    headers: Texts = EMPTY
    datasource: Text | None = field(default=None, metadata=yaml_key("datasource_id"))
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)


def check_catalog(strategy: CatalogStrategy, entries: Entries) -> CatalogStrategy:
    """Return a catalog strategy; report secrets in it."""
    # What the store contains was accepted when it was saved, and must stay readable.
    for item in entries.node.pairs() if entries.node.text else ():
        if item.name in ("endpoint", "params", "headers"):
            check_secret("the setting", item, _IN_SERVICE, entries.findings)
    check_reference(entries, "auth")
    return strategy


Strategy = PathStrategy | TableStrategy | CatalogStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Spec):
    """A condition, and where the data is when it is true.

    `data_level` is the calendar level by which the data is split.
    """

    name: Text
    when: Annotated[LocatedText | None, expression_key("when")] = None
    data_level: Text = field(default=ANY_LEVEL, metadata=ALWAYS)
    missing: Literal["fail", "skip"] = "fail"
    strategy: Annotated[Strategy, Field(discriminator="type")]
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolver(Spec):
    """Ordered rules that locate data.

    The first rule whose condition is true is used.
    """

    FIRST: ClassVar = ("id", "name", "version", "status", "description")
    id: Text = field(default="", metadata=ALWAYS)
    name: Text = field(default="", metadata=ALWAYS)
    version: Positive = field(default=1, metadata=ALWAYS)
    status: EntityStatus = field(default="active", metadata=ALWAYS)
    is_default: bool = field(default=False, metadata=ALWAYS)
    description: str = ""
    rules: Annotated[tuple[Rule, ...], Limits(min_length=1)]
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"

    def fingerprint(self) -> str:
        """Return the hash of the rules."""
        return fingerprint([rule.to_dict() for rule in self.rules])


def check_resolver(resolver: Resolver, entries: Entries) -> Resolver:
    """Return a resolver with its id and name; report rules that share a name."""
    id, name = read_identity(entries, "resolver")
    names: set[str] = set()
    for rule in entries.parts("rules"):
        rule_name = rule.text("name")
        if rule_name in names:
            rule.report("W1018", f"two rules have the name {rule_name!r}", "name", "rename one of them")
        names.add(rule_name)
    return replace(resolver, id=id, name=name)
