"""The catalog strategy: a rendered request, and a service that answers it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from resolvers import dataset, resolver, rule, table
from weft.core.calendar import GREGORIAN
from weft.core.frozen import FrozenMap
from weft.errors import ResolutionError
from weft.io.location import Location
from weft.pipelines.model.resolver import CatalogStrategy
from weft.pipelines.plan.resolver.rules import resolve_table
from weft.pipelines.plan.resolver.service import needs_service, request_location

ANSWERS: dict[str, tuple[int, bytes]] = {
    "/nested": (200, b'{"location": {"path": "s3a://lake/x", "format": "csv"}}'),
    "/flat": (200, b'{"path": "data/x"}'),
    "/table": (200, b'{"location": {"table": "orders", "schema": "gl"}}'),
    "/text": (200, b"<html>"),
    "/list": (200, b"[]"),
    "/empty": (200, b"{}"),
    "/format": (200, b'{"path": "x", "format": "xls"}'),
    "/gone": (404, b"{}"),
    "/moved": (302, b""),
}


class Service(BaseHTTPRequestHandler):
    """Answers what `ANSWERS` says and remembers what it was asked."""

    calls: list[dict[str, Any]]

    def answer(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size).decode()
        self.calls.append({"method": self.command, "path": self.path, "headers": dict(self.headers), "body": body})
        status, text = ANSWERS[self.path.partition("?")[0]]
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/flat")
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = answer  # noqa: N815  # the names that http.server calls

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@pytest.fixture
def service() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    handler = type("Handler", (Service,), {"calls": []})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler.calls  # type: ignore[attr-defined]
    server.shutdown()
    thread.join()
    server.server_close()


def location(endpoint: str, **keys: Any) -> Location:
    strategy = CatalogStrategy(endpoint=endpoint, **keys)
    main = table("sales report")
    found = resolve_table(
        resolver(rule("ask", strategy=strategy)),
        dataset(main),
        main,
        GREGORIAN.parse("2026-01"),
        GREGORIAN,
        source="system_default",
    )
    return found.locations[0]


def test_endpoint_parameters_and_headers_are_rendered() -> None:
    at = location(
        "https://catalog/tables/{{table_name}}",
        params=FrozenMap(period="{{period}}", fixed="x"),
        headers=FrozenMap({"X-Table": "{{table_name}}"}),
        auth="env:CATALOG_TOKEN",
    )
    assert needs_service(at)
    assert at.to_dict()["catalog"] == {
        "endpoint": "https://catalog/tables/sales%20report",
        "method": "GET",
        "auth": "env:CATALOG_TOKEN",
        "params": {"period": "2026-01", "fixed": "x"},
        "headers": {"X-Table": "sales report"},
    }
    assert (at.path, at.table, str(at)) == (None, None, "https://catalog/tables/sales%20report")


@pytest.mark.parametrize("key", ["params", "headers"])
def test_an_unknown_token_in_parameters_or_headers_is_refused(key: str) -> None:
    with pytest.raises(ResolutionError) as caught:
        location("https://catalog", **{key: FrozenMap(a="{{ZZZ}}")})
    assert caught.value.code == "W1310"


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("nested", ("s3a://lake/x", None, None, "csv")),
        ("flat", ("data/x", None, None, "parquet")),
        ("table", (None, "orders", "gl", "parquet")),
    ],
)
def test_the_service_returns_where_the_data_is(
    service: tuple[str, list[dict[str, Any]]], answer: str, found: tuple[str | None, ...]
) -> None:
    url, calls = service
    at = request_location(location(f"{url}/{answer}", params=FrozenMap(p="{{period}}&x")), Path())
    assert not needs_service(at)
    assert at.catalog is not None
    assert (at.path, at.table, at.schema, at.catalog["format"]) == found
    assert at.period_identifier == "2026-01"
    assert calls[0]["path"] == f"/{answer}?p=2026-01%26x"


def test_a_post_carries_its_parameters_as_json_and_the_token_as_header(
    service: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, calls = service
    monkeypatch.setenv("CATALOG_TOKEN", "abc")
    at = location(f"{url}/flat", method="POST", auth="env:CATALOG_TOKEN", params=FrozenMap(p="{{period}}"))
    request_location(at, Path())
    assert calls[0]["method"] == "POST"
    assert json.loads(calls[0]["body"]) == {"p": "2026-01"}
    assert calls[0]["headers"]["Authorization"] == "Bearer abc"


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        ("text", "not JSON"),
        ("list", "not a JSON object"),
        ("empty", "has no path and no table"),
        ("format", "format 'xls'"),
        ("gone", "404"),
        ("moved", "302"),
    ],
)
def test_an_invalid_response_is_reported(service: tuple[str, list[dict[str, Any]]], answer: str, part: str) -> None:
    url, calls = service
    with pytest.raises(ResolutionError) as caught:
        request_location(location(f"{url}/{answer}"), Path())
    assert caught.value.code == "W1313"
    assert part in caught.value.message
    assert f"{url}/{answer}" in caught.value.message
    assert len(calls) == 1


@pytest.mark.parametrize("endpoint", ["file:///etc/passwd", "ftp://x/y", "catalog"])
def test_only_web_addresses_are_asked(endpoint: str) -> None:
    with pytest.raises(ResolutionError, match="not an http or https URL"):
        request_location(location(endpoint), Path())


def test_a_service_that_cannot_be_reached_is_reported() -> None:
    with pytest.raises(ResolutionError) as caught:
        request_location(location("http://127.0.0.1:9/x"), Path(), timeout=1)
    assert caught.value.code == "W1313"
