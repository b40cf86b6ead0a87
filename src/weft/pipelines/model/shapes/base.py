"""What the shapes of all files share: strictness, texts, expressions, and what editors are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

Extra = Callable[[dict[str, Any]], None]


class Shape(BaseModel):
    """The shape of a mapping: its keys, no others, each of the kind it says."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Text = Annotated[str, Field(pattern=r"\S")]
"""A text that is not blank."""

Positive = Annotated[int, Field(gt=0)]

Name = Annotated[str, Field(pattern=r"\S"), WithJsonSchema({"type": ["string", "number"]})]
"""A text that may look like a number, as the identifier of a year does."""

REFERENCE_SCHEMA: dict[str, Any] = {
    "type": "string",
    "description": "name or id; name@3 pins version 3",
    "pattern": r"\S",
}


def either(*pairs: tuple[str, str]) -> ConfigDict:
    """Return the configuration of a shape whose keys have short forms: ``dataset`` for ``dataset_id``.

    The short forms are rewritten before a file is checked; only editors need to be told of them.
    """

    def extra(schema: dict[str, Any]) -> None:
        for key, short in pairs:
            properties = schema["properties"]
            properties[short] = dict(REFERENCE_SCHEMA)
            if key in schema.get("required", ()):
                schema["required"] = [name for name in schema["required"] if name != key]
                schema.setdefault("allOf", []).append({"anyOf": [{"required": [key]}, {"required": [short]}]})

    return ConfigDict(json_schema_extra=extra)
