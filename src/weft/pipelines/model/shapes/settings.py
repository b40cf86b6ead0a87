"""The shape of ``weft.yml``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import WithJsonSchema

from weft.pipelines.model.shapes.base import Shape, Text
from weft.pipelines.model.words import Conformance


class SparkShape(Shape):
    """Where Spark runs, and how it is set."""

    master: Text | None = None
    remote: Text | None = None
    conf: dict[str, Annotated[str, WithJsonSchema({"type": ["string", "number", "boolean"]})]] | None = None


class SandboxShape(Shape):
    """Where draft projects write."""

    path: Text


class SettingsShape(Shape):
    """The settings of a workspace; every key may be left out."""

    weft: Literal[1] | None = None
    store: Text | None = None
    spark: SparkShape | None = None
    default_resolver: Text | None = None
    sandbox: SandboxShape | None = None
    conformance: Conformance | None = None
    notify: list[Any] | None = None
