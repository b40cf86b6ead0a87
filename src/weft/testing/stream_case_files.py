"""Reading of stream case files: every finding at once, each with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from weft.core.frozen import FrozenMap
from weft.core.names import find_similar, format_list, suggest
from weft.core.source import Source
from weft.core.types import TIMESTAMP
from weft.errors import CODES, CaseFileError, Code, Diagnostic
from weft.pipelines.model.yaml_nodes import Item, Node
from weft.testing.cases import compose, plain
from weft.testing.cells import Cell
from weft.testing.cells import read as read_cell
from weft.testing.stream_cases import ARRIVALS, StreamCase, StreamRows
from weft.testing.tables import T, Table
from weft.testing.values import microseconds

_NEEDED = ("id", "why", "sql", "streams")
_KEYS = (
    *_NEEDED,
    *("tables", "set", "expect", "error", "ledger", "rejects", "notes", "arrivals", "final", "groups"),
    *("idle", "wall_clock"),
)
_STREAM_KEYS = ("rows", "with", "unread")
_COUNTS = ("in", "matched", "waiting", "unmatched", "late", "rejected", "evicted")


def load_stream_cases(path: str | Path) -> tuple[StreamCase, ...]:
    """Read the stream case file at `path`; raise `CaseFileError` with every finding."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise CaseFileError(
            f"case file {str(path)!r} cannot be read: {cause}",
            help="check the path and the rights of the file",
        ) from cause
    return read_stream_cases(text, file=str(path))


def read_stream_cases(text: str, *, file: str | None = None) -> tuple[StreamCase, ...]:
    """Read stream cases from the text of a case file."""
    root = compose(text, file)
    if not root.is_list or not root.value:
        raise CaseFileError(
            "a stream case file is a list of cases", help="write '- id: ...' for each case", at=root.place()
        )
    reader = _Reader()
    cases = [case for node in root.items() if (case := reader.case(node)) is not None]
    reader.check_ids(cases)
    if reader.findings:
        raise CaseFileError(reader.findings)
    return tuple(cases)


class _Reader:
    """Reads cases and keeps what is wrong with them."""

    def __init__(self) -> None:
        self.findings: list[Diagnostic] = []

    def find(self, message: str, at: Source, help: str = "") -> None:
        self.findings.append(Diagnostic("W0901", message, help=help, at=at))

    def check_ids(self, cases: Iterable[StreamCase]) -> None:
        seen: dict[str, StreamCase] = {}
        for case in cases:
            if case.id in seen:
                first = seen[case.id].source.line
                self.find(f"the id {case.id!r} is taken", case.source, f"the case in line {first} has it")
            seen.setdefault(case.id, case)

    def case(self, node: Node) -> StreamCase | None:
        before = len(self.findings)
        items = self.items(node, _KEYS, "a case")
        for key in _NEEDED:
            if key not in items and node.is_mapping:
                self.find(f"the case has no {key!r}", node.head(), f"a case has {format_list(_KEYS)}")
        if node.is_mapping and ("expect" in items) == ("error" in items):
            self.find("a case has either 'expect' or 'error'", node.head())
        said: dict[str, Any] = {}
        for key, item in items.items():
            if key in _READERS:
                name, read = _READERS[key]
                said[name] = read(self, item)
        if len(self.findings) > before:
            return None
        return StreamCase(**said, source=items["id"].value.place())

    def items(self, node: Node, known: tuple[str, ...], what: str) -> dict[str, Item]:
        found: dict[str, Item] = {}
        if not node.is_mapping:
            self.find(f"{what} is a mapping", node.place(), f"{what} has {format_list(known)}")
            return found
        for item in node.pairs():
            if known and item.name not in known:
                help = suggest(item.name, known, f"{what} has", most=1)
                self.find(f"{what} has no {item.name!r}", item.key.place(), help)
            else:
                found[item.name] = item
        return found

    def text(self, item: Item) -> str:
        value = plain(item.value)
        if not isinstance(value, str) or not value.strip():
            self.find(f"{item.name!r} must be a text", item.value.place())
            return ""
        return value.strip()

    def line(self, item: Item) -> str:
        return " ".join(self.text(item).split())

    def of_type(self, item: Item, wanted: type, word: str) -> Any:
        value = plain(item.value)
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            self.find(f"{item.name!r} must be {word}", item.value.place())
            return wanted()
        return value

    def table(self, item: Item) -> Table:
        text = plain(item.value)
        if isinstance(text, str):
            try:
                return T(text, source=item.value.block() or Source.whole(text, item.value.file))
            except CaseFileError as cause:
                self.findings.extend(cause.diagnostics)
        else:
            self.find(
                f"{item.name!r} must be a table", item.value.place(), f"write {item.name}: | and the table"
            )
        return T("nothing")

    def tables(self, item: Item) -> FrozenMap[str, Table]:
        return FrozenMap({i.name: self.table(i) for i in self.items(item.value, (), "tables").values()})

    def streams(self, item: Item) -> FrozenMap[str, StreamRows]:
        return FrozenMap({i.name: self.stream(i) for i in self.items(item.value, (), "streams").values()})

    def stream(self, item: Item) -> StreamRows:
        if not item.value.is_mapping:
            return StreamRows(table=self.table(item))
        said = self.items(item.value, _STREAM_KEYS, "a stream")
        if "rows" not in said:
            self.find(f"stream {item.name!r} has no rows", item.value.head(), "write rows: | and the table")
            return StreamRows(table=T("nothing"))
        options = self.of_type(said["with"], dict, "a mapping of options") if "with" in said else {}
        unread = self.of_type(said["unread"], dict, "texts by batch") if "unread" in said else {}
        texts = tuple((int(batch), text) for batch, told in unread.items() for text in told)
        return StreamRows(table=self.table(said["rows"]), options=FrozenMap(options), unread=texts)

    def code(self, text: str, at: Source) -> Code | None:
        if text in CODES:
            return text  # type: ignore[return-value]  # one of the codes
        close = find_similar(text, CODES, most=1)
        self.find(f"there is no code {text!r}", at, f"did you mean {close[0]!r}?" if close else "")
        return None

    def error(self, item: Item) -> Code | None:
        return self.code(self.line(item), item.value.place())

    def notes(self, item: Item) -> tuple[Code | None, ...]:
        said = self.of_type(item, list, "a list of codes")
        return tuple(self.code(str(c), item.value.place()) for c in said)

    def ledger(self, item: Item) -> FrozenMap[str, FrozenMap[str, int]]:
        sides = self.items(item.value, (), "a ledger")
        for side in sides.values():
            self.items(side.value, _COUNTS, "a side of the ledger")
        return FrozenMap({name: FrozenMap(plain(i.value)) for name, i in sides.items()})

    def mapping(self, item: Item) -> FrozenMap[str, Any]:
        return FrozenMap(self.of_type(item, dict, "a mapping"))

    def arrivals(self, item: Item) -> tuple[Any, ...]:
        said = self.of_type(item, list, f"a list of {format_list(ARRIVALS)}")
        for word in said:
            if word not in ARRIVALS:
                self.find(
                    f"there is no arrival {word!r}", item.value.place(), f"there is {format_list(ARRIVALS)}"
                )
        return tuple(said)

    def idle(self, item: Item) -> FrozenMap[int, tuple[str, ...]]:
        said: Mapping[Any, Any] = self.of_type(item, dict, "aliases by batch")
        return FrozenMap({int(batch): tuple(aliases) for batch, aliases in said.items()})

    def moment(self, item: Item) -> int:
        try:
            return microseconds(read_cell(Cell(self.line(item)), TIMESTAMP))
        except CaseFileError as cause:
            self.find(cause.message, item.value.place(), cause.help)
            return 0


_READERS: dict[str, tuple[str, Callable[[_Reader, Item], Any]]] = {
    "id": ("id", _Reader.line),
    "why": ("why", _Reader.line),
    "sql": ("sql", _Reader.text),
    "streams": ("streams", _Reader.streams),
    "tables": ("tables", _Reader.tables),
    "set": ("settings", _Reader.mapping),
    "expect": ("expect", _Reader.table),
    "error": ("error", _Reader.error),
    "ledger": ("ledger", _Reader.ledger),
    "rejects": ("rejects", _Reader.mapping),
    "notes": ("notes", _Reader.notes),
    "arrivals": ("arrivals", _Reader.arrivals),
    "final": ("final", lambda reader, item: reader.of_type(item, bool, "true or false")),
    "groups": ("groups", lambda reader, item: reader.of_type(item, int, "a number")),
    "idle": ("idle", _Reader.idle),
    "wall_clock": ("wall_clock", _Reader.moment),
}
