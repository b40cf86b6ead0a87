"""The catalog strategy at run time: requests the location of the data from a service.

::

    GET https://catalog.example/tables/orders?period=2026-01
    {"location": {"path": "s3a://lake/orders/2026-01", "format": "parquet"}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from weft.core.frozen import EMPTY, FrozenMap
from weft.errors import ResolutionError
from weft.io.connectors import file_kinds
from weft.io.datasource import read_secret
from weft.io.location import Location

TIMEOUT_SECONDS = 10
_MOST_BYTES = 1 << 20  # of a response: it describes one location, so more is not from a catalog


def needs_service(location: Location) -> bool:
    """Whether the location of the data must be requested from a service."""
    return location.catalog is not None and "endpoint" in location.catalog


def request_location(location: Location, root: Path, *, timeout: float = TIMEOUT_SECONDS) -> Location:
    """Return the location from the response of the service; raise `ResolutionError` W1313 when it has none."""
    request = location.catalog or EMPTY
    endpoint = str(request["endpoint"])
    answer = _json(location, _call(location, _request(location, root), timeout))
    place = answer.get("location", answer)
    if not isinstance(place, Mapping) or not isinstance(place.get("path") or place.get("table"), str):
        raise _failed(location, f"its response has no path and no table: {json.dumps(answer)[:200]}")
    format = str(place.get("format") or "parquet")
    if format not in file_kinds():
        raise _failed(location, f"its response has the unsupported format {format!r}")
    schema = place.get("schema")
    return replace(
        location,
        path=place.get("path"),
        table=None if place.get("path") else place["table"],
        schema=schema if isinstance(schema, str) else None,
        catalog=FrozenMap(format=format, asked=endpoint),
    )


def _request(location: Location, root: Path) -> Request:
    spec = location.catalog or EMPTY
    url, params, method = str(spec["endpoint"]), dict(spec["params"]), str(spec["method"])
    # urllib would also open file: and ftp:, and an endpoint may be a template.
    if urlsplit(url).scheme not in ("http", "https"):
        raise _failed(location, "its endpoint is not an http or https URL")
    headers = {"Accept": "application/json", **spec["headers"]}
    if spec["auth"]:
        token = read_secret(str(spec["auth"]), root, f"rule {location.rule_name!r}")
        headers["Authorization"] = token if " " in token else f"Bearer {token}"
    if method == "POST":
        body = json.dumps(params).encode()
        return Request(url, data=body, headers={"Content-Type": "application/json", **headers}, method=method)  # noqa: S310
    if params:
        url += ("&" if "?" in url else "?") + urlencode(params)
    return Request(url, headers=headers, method=method)  # noqa: S310  # the scheme was checked


class _NoRedirect(HTTPRedirectHandler):
    """Refuses redirects, so that credentials are sent only to the configured service."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002
        return None


def _call(location: Location, request: Request, timeout: float) -> bytes:
    try:
        with build_opener(_NoRedirect).open(request, timeout=timeout) as answer:
            text: bytes = answer.read(_MOST_BYTES)
            return text
    except HTTPError as cause:
        cause.close()  # it holds the connection
        raise _failed(location, str(cause)) from cause
    except (URLError, OSError, HTTPException, ValueError) as cause:
        raise _failed(location, str(cause)) from cause


def _json(location: Location, body: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as cause:
        raise _failed(location, "its response is not JSON") from cause
    if not isinstance(answer, Mapping):
        raise _failed(location, "its response is not a JSON object")
    return answer


def _failed(location: Location, why: str) -> ResolutionError:
    endpoint = (location.catalog or EMPTY).get("endpoint")
    return ResolutionError(
        f"the catalog of rule {location.rule_name!r} did not return a location for "
        f"{location.period_identifier}: {endpoint}: {why}",
        code="W1313",
        help='the response must be {"location": {"path": "...", "format": "parquet"}} or {"path": "..."}; '
        "see `weft resolver test DATASET -p PERIOD --call`",
    )
