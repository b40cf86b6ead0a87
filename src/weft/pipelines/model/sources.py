"""Datasources, resolvers, calendars and settings from their files."""

from __future__ import annotations

import re
from collections.abc import Mapping

from weft.core.frozen import FrozenMap, frozen
from weft.core.mistakes import MOST_FINDINGS
from weft.core.paths import climbs_out
from weft.core.period import GREGORIAN, calendar_from_dict
from weft.core.source import Source
from weft.errors import PeriodError
from weft.io.settings import SparkSettings
from weft.pipelines.model.datasource import check_secret
from weft.pipelines.model.entries import Entries, Findings, check_path_name, sites_of
from weft.pipelines.model.workspace import CalendarFile, Sandbox, Settings
from weft.pipelines.model.yaml_nodes import Node, plain

_IN_SPARK = "set it where Spark runs: in the environment, in spark-defaults.conf or in core-site.xml"
_IN_STORE = "use PGPASSWORD, ~/.pgpass, or `store: env:NAME`"


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
            check_secret("the setting", item, _IN_STORE, findings, "warning")
    if spark is not None:
        for item in spark.node.pairs():
            check_secret("the setting", item, _IN_SPARK, findings)
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
