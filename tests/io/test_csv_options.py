"""The options of CSV files that follow from their datasource, and from who wrote them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weft.core.frozen import FrozenMap
from weft.errors import ResolutionError
from weft.io.datasource import DataSource
from weft.io.options import CsvOptions, csv_options, read_header


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


@pytest.mark.parametrize("encoding", ["UTF-8", "utf8"])
def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "excel.csv"
    file.write_bytes(b'\xef\xbb\xbfid;"a;b"\r\n1;2\r\n')
    assert read_header(file, CsvOptions(delimiter=";", encoding=encoding)) == ("id", "a;b")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"id,id\n", "has two columns 'id'"), (b"id,\xff\n", "cannot read"), (None, "cannot read")],
)
def test_a_header_that_cannot_be_used_is_reported(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "wrong.csv"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ResolutionError, match=message) as caught:
        read_header(file, CsvOptions())
    assert caught.value.code == "W1318"
