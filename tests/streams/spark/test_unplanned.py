"""Entries of Spark's file sources that no planned batch has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from weft.streams.checkpoint.offsets import drop_unplanned

FILE = 'v1\n{"path":"file:///in/%d.json","timestamp":1600000000000,"batchId":%d}'
KAFKA = 'v1\n{"orders":{"0":0}}'


def checkpoint(root: Path, offsets: dict[int, list[str]], sources: dict[int, dict[str, str]]) -> Path:
    """Write a checkpoint as Spark does: plans of batches, and what each source has noted."""
    for batch, lines in offsets.items():
        _write(root / "offsets" / str(batch), "\n".join(["v1", "{}", *lines]))
    for number, entries in sources.items():
        for name, text in entries.items():
            _write(root / "sources" / str(number) / name, text)
    return root


def noted(*numbers: int) -> dict[str, str]:
    return {str(n): FILE % (n, n) for n in numbers}


def left(root: Path, source: int) -> list[str]:
    return sorted(p.name for p in (root / "sources" / str(source)).iterdir() if not p.name.startswith("."))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.with_name(f".{path.name}.crc").write_bytes(b"crc")


@pytest.mark.parametrize(
    ("offsets", "entries", "wanted"),
    [
        pytest.param({0: [0], 1: [1]}, (0, 1, 2), ["0", "1"], id="noted, not planned"),
        pytest.param({0: [0], 1: [1]}, (0, 1), ["0", "1"], id="all planned"),
        pytest.param({9: [9], 10: [10]}, range(12), sorted(map(str, range(11))), id="numbers, not texts"),
        pytest.param({}, (0,), [], id="killed before the first plan"),
        pytest.param({0: [None]}, (0,), [], id="a source that had given nothing"),
    ],
)
def test_entries_beyond_the_newest_plan_go(
    tmp_path: Path, offsets: dict[int, list[int | None]], entries: Sequence[int], wanted: list[str]
) -> None:
    plans = {b: ["-" if n is None else f'{{"logOffset":{n}}}' for n in numbers] for b, numbers in offsets.items()}
    root = checkpoint(tmp_path, plans, {0: noted(*entries)})
    drop_unplanned(root)
    assert left(root, 0) == wanted
    assert not [p for p in root.rglob(".*.crc") if not p.with_name(p.name[1:-4]).exists()]


def test_each_source_has_its_own_place(tmp_path: Path) -> None:
    root = checkpoint(tmp_path, {0: ['{"logOffset":3}', '{"logOffset":0}']}, {0: noted(0, 1, 2, 3, 4), 1: noted(0, 1)})
    drop_unplanned(root)
    assert (left(root, 0), left(root, 1)) == (["0", "1", "2", "3"], ["0"])


@pytest.mark.parametrize(
    ("there", "last", "wanted"),
    [
        pytest.param("0 1 2 3.compact 4", 2, "0 1 2", id="gathered, and the others are there"),
        pytest.param("1.compact 2 3.compact", 2, "1.compact 2", id="gathered before too"),
        pytest.param("2 3.compact", 2, "2 3.compact", id="all that is left of others stays"),
        pytest.param("1.compact 3 4", 3, "1.compact 3 4", id="one is missing"),
        pytest.param("1.compact 2 3", 2, "1.compact 2", id="an older one gathered"),
    ],
)
def test_an_entry_that_gathers_others_goes_when_they_are_there(
    tmp_path: Path, there: str, last: int, wanted: str
) -> None:
    root = checkpoint(tmp_path, {0: [f'{{"logOffset":{last}}}']}, {0: dict.fromkeys(there.split(), FILE % (0, 0))})
    drop_unplanned(root)
    assert left(root, 0) == wanted.split()


@pytest.mark.parametrize("offsets", [{}, {0: ['{"orders":{"0":5}}']}], ids=["no plan", "a plan"])
def test_the_first_offsets_of_kafka_stay(tmp_path: Path, offsets: dict[int, list[str]]) -> None:
    root = checkpoint(tmp_path, offsets, {0: {"0": KAFKA}})
    drop_unplanned(root)
    assert left(root, 0) == ["0"]


def test_a_plan_in_another_format_is_left_alone(tmp_path: Path) -> None:
    root = checkpoint(tmp_path, {}, {0: noted(0, 1)})
    _write(root / "offsets" / "0", 'v9\n{}\n{"logOffset":0}')
    drop_unplanned(root)
    assert left(root, 0) == ["0", "1"]


def test_nothing_there_is_nothing_to_do(tmp_path: Path) -> None:
    drop_unplanned(tmp_path / "none")
    assert not (tmp_path / "none").exists()
