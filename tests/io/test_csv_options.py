"""The options of CSV files that follow from their datasource, and from who wrote them."""

from __future__ import annotations

from typing import Any

import pytest

from weft.core.frozen import FrozenMap
from weft.io.datasource import DataSource
from weft.io.options import csv_options


@pytest.mark.parametrize(
    ("type_", "options", "multiline"),
    [
        ("csv", {}, None),
        ("csv", {"multiline": False}, False),
        ("csv", {"multiline": True}, True),
        ("parquet", {}, None),
    ],
)
def test_a_published_file_is_read_by_whole_records_whatever_its_datasource_says(
    type_: str, options: dict[str, Any], *, multiline: bool | None
) -> None:
    """Weft writes line ends inside a string, so a record of a published file may take several lines."""
    source = DataSource(type=type_, options=FrozenMap(options))
    assert csv_options(source).multiline is multiline
    assert csv_options(source, published=True).multiline is True


def test_files_without_a_datasource_are_read_by_whole_records() -> None:
    assert csv_options(None).multiline is True
