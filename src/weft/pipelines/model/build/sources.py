"""Datasources, resolvers, calendars and settings from their files."""

from __future__ import annotations

import re
from collections.abc import Mapping

from weft.core.frozen import FrozenMap, frozen
from weft.core.mistakes import MOST_FINDINGS
from weft.core.paths import climbs_out
from weft.core.period import GREGORIAN, calendar_from_dict
from weft.core.source import Source
from weft.errors import PeriodError, Severity
from weft.io.datasource import DataSource
from weft.io.location import ANY_LEVEL
from weft.io.settings import SparkSettings
from weft.pipelines.model.build.entries import Entries, check_path_name, identity
from weft.pipelines.model.findings import Findings
from weft.pipelines.model.places import sites_of
from weft.pipelines.model.resolver import (
    CatalogStrategy,
    PathStrategy,
    Resolver,
    Rule,
    Strategy,
    TableStrategy,
)
from weft.pipelines.model.workspace import CalendarFile, Sandbox, Settings
from weft.pipelines.model.yaml_nodes import Item, Node, plain
from weft.redaction import holds_secret, is_placeholder, is_secret_name

_REFERENCE = re.compile(r"(?:env|file):\S")
_OUTSIDE = "keep it outside: `credential_ref: env:NAME` or `credential_ref: file:path`"
_IN_SPARK = "set it where Spark runs: in the environment, in spark-defaults.conf or in core-site.xml"
_IN_STORE = "use PGPASSWORD, ~/.pgpass, or `store: env:NAME`"
_IN_SERVICE = "keep it outside: `auth: env:NAME` or `auth: file:path` goes into the Authorization header"


def build_datasource(node: Node, findings: Findings) -> DataSource:
    """Return the datasource of a canonical node; secrets in its options are noted."""
    entries = Entries(node, findings)
    id, name = identity(entries, "datasource")
    kind = entries.value("type")
    # What the store holds was accepted when it was written, and stays readable.
    for item in entries.pairs("options") if node.text else ():
        _check_secret("option", item, _OUTSIDE, findings)
    _check_reference(entries, "credential_ref")
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


def _check_secret(what: str, item: Item, help: str, findings: Findings, severity: Severity = "error") -> None:
    """Note a secret that an entry holds, by its name or inside its value."""
    name, key, value = item
    if value.kind != "scalar":
        inner = value.pairs() if value.is_mapping else (Item(name, key, part) for part in value.items())
        for part in inner:
            _check_secret(what, part, help, findings, severity)
    elif is_secret_name(name):
        if not is_placeholder(str(value.value)):
            findings.add("W1015", f"{what} {name!r} looks like a secret", key.place(), help, severity)
    elif holds_secret(name, str(value.value)):
        findings.add("W1015", f"{what} {name!r} holds a secret", value.place(), help, severity)


def _check_reference(entries: Entries, name: str) -> None:
    """Note what is written instead of a reference to a secret: it may be the secret itself."""
    said = entries.text_or_none(name)
    if said is not None and entries.node.text and _REFERENCE.match(said.strip()) is None:
        entries.find("W1015", f"{name!r} must be env:NAME or file:path", name, "keep the secret outside")


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
    for key in ("endpoint", "params", "headers"):
        for item in said.node.pairs():
            if item.name == key and said.node.text:
                _check_secret("the setting", item, _IN_SERVICE, said.findings)
    _check_reference(said, "auth")
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
        places = _named_places(node)
        for finding in cause.diagnostics[:MOST_FINDINGS]:
            place = _calendar_place(finding.message, places, node)
            findings.add(finding.code, finding.message, place, finding.help)
        calendar = None
    return CalendarFile(
        name=name,
        calendar=GREGORIAN if calendar is None else calendar,
        status=entries.value("status", "active"),
        is_default=entries.value("is_default", False),
        at=sites_of(node),
    )


def _named_places(node: Node) -> Mapping[str, Source]:
    """Return where each level and period has its name; of two with one name, the last period."""
    places: dict[str, Source] = {}
    for part, key in (("levels", "name"), ("periods", "identifier")):
        for inner in Entries(node, Findings()).parts(part):
            said = inner.node.get(key)
            if said is not None and said.kind == "scalar":
                places[said.value] = said.place()
    return places


def _calendar_place(message: str, places: Mapping[str, Source], node: Node) -> Source:
    """Return the place of the first period or level that the message names, else of the calendar."""
    named = re.findall(r"'([^']*)'", message)
    return next((places[name] for name in named if name in places), node.head())


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
    for item in node.pairs():
        if item.name == "store":
            _check_secret("the setting", item, _IN_STORE, findings, "warning")
    if spark is not None:
        for item in spark.node.pairs():
            _check_secret("the setting", item, _IN_SPARK, findings)
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
