"""Resolver: ordered rules that say where the data of a table and a period lies."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weft.core.fingerprint import fingerprint
from weft.core.frozen import EMPTY, FrozenMap
from weft.core.source import NO_SOURCES
from weft.core.spec import ALWAYS, REQUIRED, Limits, Locations, Positive, ReadAs, Spec, Text, yaml_key
from weft.io.datasource import EntityStatus
from weft.io.location import ANY_LEVEL
from weft.pipelines.model.datasource import check_reference, check_secret
from weft.pipelines.model.entries import Entries, expression_key, read_identity
from weft.pipelines.model.values import LocatedText

_IN_SERVICE = "keep it outside: `auth: env:NAME` or `auth: file:path` goes into the Authorization header"
_DATASOURCE = (("datasource_id", "datasource"),)


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


def _texts(_value: Any, written: Any, _reader: Any) -> FrozenMap[str, str]:
    """Return a mapping with each value as it was written."""
    return FrozenMap({item.name: str(item.value.value) for item in written.node.pairs()})


Texts = Annotated[FrozenMap[str, str], ReadAs(dict[str, str | int | bool], _texts)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogStrategy(Spec):
    """A service that says where the data lies.

    `auth` names a credential, never holds one.
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
    """Return a catalog strategy; secrets in it are noted."""
    for name in ("endpoint", "params", "headers"):
        for item in entries.node.pairs():
            if item.name == name and entries.node.text:
                check_secret("the setting", item, _IN_SERVICE, entries.findings)
    check_reference(entries, "auth")
    return strategy


Strategy = PathStrategy | TableStrategy | CatalogStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Spec):
    """A rule: when it holds, and where the data lies then.

    `data_level` is the level of the calendar at which the data is cut.
    """

    name: Text
    when: Annotated[LocatedText | None, expression_key("when")] = None
    data_level: Text = field(default=ANY_LEVEL, metadata=ALWAYS)
    missing: Literal["fail", "skip"] = "fail"
    strategy: Annotated[Strategy, Field(discriminator="type")]
    at: Locations = field(default=NO_SOURCES, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolver(Spec):
    """Ordered rules that say where data lies.

    The first rule that holds decides.
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
    """Return a resolver with its id and name; rules with one name are noted."""
    id, name = read_identity(entries, "resolver")
    seen: set[str] = set()
    for rule in entries.parts("rules"):
        named = rule.text("name")
        if named in seen:
            rule.find("W1018", f"two rules have the name {named!r}", "name", "rename one of them")
        seen.add(named)
    return replace(resolver, id=id, name=name)
