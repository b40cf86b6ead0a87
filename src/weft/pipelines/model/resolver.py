"""Resolver: ordered rules that say where the data of a table and a period lies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from weft.core.fingerprint import fingerprint
from weft.core.frozen import EMPTY, FrozenMap, thawed
from weft.core.sites import NOWHERE, Sites
from weft.io.datasource import EntityStatus
from weft.io.location import ANY_LEVEL
from weft.pipelines.model.reference import Said


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStrategy:
    """A file, folder or glob below the prefix of a datasource."""

    datasource: str
    path: str
    at: Sites = field(default=NOWHERE, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the form that a resolver file has."""
        return {"type": "path", "datasource_id": self.datasource, "path": self.path}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStrategy:
    """A table of a database or catalog."""

    datasource: str
    table: str
    schema: str = ""
    at: Sites = field(default=NOWHERE, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the form that a resolver file has."""
        schema = {"schema": self.schema} if self.schema else {}
        return {"type": "table", "datasource_id": self.datasource, "table": self.table} | schema


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogStrategy:
    """A service that is asked where the data lies; `auth` names a credential, never holds one."""

    endpoint: str
    method: Literal["GET", "POST"] = "GET"
    auth: str | None = None
    params: FrozenMap[str, str] = EMPTY
    headers: FrozenMap[str, str] = EMPTY
    datasource: str | None = None
    at: Sites = field(default=NOWHERE, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the form that a resolver file has."""
        said: dict[str, Any] = {"type": "catalog", "endpoint": self.endpoint, "method": self.method}
        more = {
            "auth": self.auth,
            "params": thawed(self.params),
            "headers": thawed(self.headers),
            "datasource_id": self.datasource,
        }
        return said | {key: value for key, value in more.items() if value}


Strategy = PathStrategy | TableStrategy | CatalogStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: when it holds, at which level of the calendar the data is cut, and where it lies."""

    name: str
    strategy: Strategy
    when: Said | None = None
    data_level: str = ANY_LEVEL
    missing: Literal["fail", "skip"] = "fail"
    at: Sites = field(default=NOWHERE, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the form that a resolver file has."""
        return {
            "name": self.name,
            **({} if self.when is None else {"when": self.when.text}),
            "data_level": self.data_level,
            **({} if self.missing == "fail" else {"missing": self.missing}),
            "strategy": self.strategy.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolver:
    """One version of a resolver; the first rule that holds decides."""

    id: str
    name: str
    version: int
    status: EntityStatus
    rules: tuple[Rule, ...]
    is_default: bool = False
    description: str = ""
    at: Sites = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"

    def to_dict(self) -> dict[str, Any]:
        """Return the canonical form of a resolver file; the store keeps it."""
        return {
            "id": self.id,
            "name": self.name,
            "version": self.version,
            "status": self.status,
            **({"description": self.description} if self.description else {}),
            "is_default": self.is_default,
            "rules": [rule.to_dict() for rule in self.rules],
        }

    def fingerprint(self) -> str:
        """Return the hash of the rules."""
        return fingerprint([rule.to_dict() for rule in self.rules])
