"""Datasources, resolvers, calendars and settings from their files."""

from __future__ import annotations

import re

from weft.core.frozen import FrozenMap, frozen
from weft.core.paths import climbs_out
from weft.core.period import GREGORIAN, calendar_from_dict
from weft.core.source import Source
from weft.errors import PeriodError
from weft.front.build.entries import Entries, check_path_name, identity
from weft.front.findings import Findings
from weft.front.places import sites_of
from weft.front.yaml_nodes import Node, plain
from weft.spec.pipeline.datasource import DataSource
from weft.spec.pipeline.resolver import (
    ANY_LEVEL,
    CatalogStrategy,
    PathStrategy,
    Resolver,
    Rule,
    Strategy,
    TableStrategy,
)
from weft.spec.pipeline.workspace import CalendarFile, Sandbox, Settings, SparkSettings

_SECRET = re.compile(
    r"pass(word|wd|phrase)?$|secret|token$|access_?key|private_?key|credential", re.IGNORECASE
)
_SECRET_IN_URL = re.compile(r"(?i)[?&;](password|pwd|token|secret)=[^&;]+|//[^/@:\s]+:[^/@\s]+@")


def build_datasource(node: Node, findings: Findings) -> DataSource:
    """Return the datasource of a canonical node; secrets in its options are noted."""
    entries = Entries(node, findings)
    id, name = identity(entries, "datasource")
    kind = entries.value("type")
    for item in entries.pairs("options"):
        _check_secret(item.name, item.key, item.value, findings)
    return DataSource(
        id=id,
        name=name,
        type="jdbc" if kind == "database" else kind,
        options=frozen(entries.value("options", {})),
        status=entries.value("status", "active"),
        credential_ref=entries.text_or_none("credential_ref"),
        description=entries.text("description"),
        at=sites_of(node),
    )


def _check_secret(name: str, key: Node, value: Node, findings: Findings) -> None:
    help = "keep it outside: `credential_ref: env:NAME` or `credential_ref: file:path`"
    if _SECRET.search(name):
        findings.add("W1015", f"option {name!r} looks like a secret", key.place(), help)
    elif value.kind == "scalar" and _SECRET_IN_URL.search(str(value.value)):
        findings.add("W1015", f"option {name!r} holds a secret", value.place(), help)
    elif value.is_mapping:
        for item in value.pairs():
            _check_secret(item.name, item.key, item.value, findings)


def build_resolver(node: Node, findings: Findings) -> Resolver:
    """Return the resolver of a canonical node; what breaks a rule is noted."""
    entries = Entries(node, findings)
    id, name = identity(entries, "resolver")
    rules = tuple(_rule(rule) for rule in entries.parts("rules"))
    seen: set[str] = set()
    for rule in entries.parts("rules"):
        said = rule.text("name")
        if said in seen:
            rule.find("W1018", f"two rules have the name {said!r}", "name", "rename one of them")
        seen.add(said)
    return Resolver(
        id=id,
        name=name,
        version=entries.whole("version", 1),
        status=entries.value("status", "active"),
        rules=rules,
        is_default=entries.value("is_default", False),
        description=entries.text("description"),
        at=sites_of(node),
    )


def _rule(rule: Entries) -> Rule:
    return Rule(
        name=rule.text("name"),
        when=rule.expression("when") if rule.said("when") is not None else None,
        data_level=rule.text("data_level", ANY_LEVEL),
        missing=rule.value("missing", "fail"),
        strategy=_strategy(rule.part("strategy") or rule),
        at=sites_of(rule.node),
    )


def _strategy(said: Entries) -> Strategy:
    kind, at = said.text("type"), sites_of(said.node)
    if kind == "path":
        return PathStrategy(datasource=said.text("datasource_id"), path=said.text("path"), at=at)
    if kind == "table":
        return TableStrategy(
            datasource=said.text("datasource_id"), table=said.text("table"), schema=said.text("schema"), at=at
        )
    return CatalogStrategy(
        endpoint=said.text("endpoint"),
        method=said.value("method", "GET"),
        auth=said.text_or_none("auth"),
        params=FrozenMap({item.name: str(item.value.value) for item in said.pairs("params")}),
        headers=FrozenMap({item.name: str(item.value.value) for item in said.pairs("headers")}),
        datasource=said.text_or_none("datasource_id"),
        at=at,
    )


def build_calendar(node: Node, findings: Findings) -> CalendarFile:
    """Return the calendar of a canonical node; what breaks a rule is noted at the period it is about."""
    entries = Entries(node, findings)
    name = entries.text("name")
    if name == GREGORIAN.name:
        entries.find("W1013", f"the calendar {name!r} is built in", "name", "choose another name")
    for period in entries.parts("periods"):
        # Outputs in files write to period=<identifier>.
        check_path_name(period, period.text("identifier"), "identifier", "the period", prefix="period=")
    data = plain(node)
    said = {"name": name, "levels": data["levels"], "periods": data["periods"]}
    try:
        calendar = calendar_from_dict(said)
    except PeriodError as cause:
        for finding in cause.diagnostics:
            findings.add(finding.code, finding.message, _calendar_place(finding.message, node), finding.help)
        calendar = None
    return CalendarFile(
        name=name,
        calendar=GREGORIAN if calendar is None else calendar,
        status=entries.value("status", "active"),
        is_default=entries.value("is_default", False),
        at=sites_of(node),
    )


def _calendar_place(message: str, node: Node) -> Source:
    """Return the place of the last period or level that the message names, else of the calendar."""
    named = re.findall(r"'([^']*)'", message)
    for part, key in (("periods", "identifier"), ("levels", "name")):
        found = node.get(part)
        if found is None or not found.is_list:
            continue
        texts = [(inner.get(key), inner) for inner in found.items()]
        for name in named:
            places = [said for said, _ in texts if said is not None and said.value == name]
            if places:
                return places[-1].place()
    return node.head()


def build_settings(node: Node, findings: Findings) -> Settings:
    """Return the settings that ``weft.yml`` says."""
    entries = Entries(node, findings)
    spark = entries.part("spark")
    if spark is not None and spark.said("master") is not None and spark.said("remote") is not None:
        spark.find("W1006", "'master' and 'remote' say different things", "remote", "keep one of them")
    sandbox = entries.part("sandbox")
    if sandbox is not None and climbs_out(sandbox.text("path")):
        sandbox.find(
            "W1311",
            f"the sandbox {sandbox.text('path')!r} leads out of the workspace",
            "path",
            "write a folder of the workspace, or an absolute path",
        )
    default = Settings()
    return Settings(
        store=entries.text("store", default.store),
        spark=SparkSettings() if spark is None else _spark(spark),
        default_resolver=entries.text_or_none("default_resolver"),
        sandbox=default.sandbox if sandbox is None else Sandbox(path=sandbox.text("path")),
        conformance=entries.value("conformance", "extended"),
        notify=frozen(entries.value("notify", [])),
        at=sites_of(node),
    )


def _spark(spark: Entries) -> SparkSettings:
    return SparkSettings(
        master=spark.text_or_none("master"),
        remote=spark.text_or_none("remote"),
        conf=FrozenMap({item.name: str(item.value.value) for item in spark.pairs("conf")}),
    )
