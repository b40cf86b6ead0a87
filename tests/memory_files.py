"""A store in the memory of this process: obstore's, with the code that object stores use."""

from __future__ import annotations

from typing import Any

from obstore.store import MemoryStore

from weft.io.stores.address import parse_address
from weft.io.stores.objects import ObjectFiles
from weft.io.stores.settings import read_settings


class MemoryFiles(ObjectFiles):
    """Objects in the memory of this process."""

    def __init__(self, name: str = "test", **settings: str) -> None:
        super().__init__(parse_address(f"s3://memory/{name}"), read_settings("s3", settings))
        self.objects = MemoryStore()

    def _connect(self, patience: object) -> Any:  # noqa: ARG002
        return self.objects
