"""JSON schemas of types, and what they allow, in plain English, for messages about settings."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from pydantic import TypeAdapter

from retrace.core.errors import MOST_SHOWN

_NAMES = {  # of a JSON type: alone, and in a list
    "number": ("a number", "numbers"),
    "integer": ("a whole number", "whole numbers"),
    "boolean": ("true or false", "true or false"),
    "string": ("a string", "names"),
    "null": ("null", "null"),
    "object": ("a mapping", "mappings"),
}
_LIMITS = {
    ("exclusiveMinimum", "exclusiveMaximum"): " between {} and {}",
    ("minimum", "maximum"): " from {} to {}",
    ("minimum", "exclusiveMaximum"): " from {} to below {}",
    ("exclusiveMinimum", "maximum"): " above {} and up to {}",
    ("exclusiveMinimum",): " above {}",
    ("minimum",): " of {} or more",
}


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of a type, with all references resolved."""
    whole = TypeAdapter(kind).json_schema()

    def resolved(part: Any) -> Any:
        if isinstance(part, list):
            return [resolved(each) for each in part]
        if not isinstance(part, dict):
            return part
        named = whole["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else {}
        return {name: resolved(each) for name, each in (named | part).items() if name not in ("$ref", "$defs")}

    return resolved(whole)


def within(schema: Mapping[str, Any], place: Iterable[Any]) -> Mapping[str, Any]:
    """The part of a JSON schema for the value at a path; empty if there is none."""
    for part in place:
        found: list[Any] = []
        for each in schema.get("anyOf", [schema]):
            found += [each.get("properties", {}).get(part), each.get("items"), each.get("additionalProperties")]
        schema = next((each for each in found if isinstance(each, Mapping)), {})
    return schema


def allowed_values(schema: Mapping[str, Any]) -> str:
    """The values that a JSON schema allows, in plain English."""
    if "anyOf" in schema:
        return " or ".join(allowed_values(each) for each in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return f"one of {', '.join(map(str, schema.get('enum') or [schema['const']]))}"
    if schema.get("type") != "array":
        return _NAMES.get(schema.get("type", ""), ("any value", ""))[0] + _limits(schema)
    items = schema["items"]
    if "enum" in items:
        return f"a list with some of {', '.join(items['enum'])}"
    least = f"{schema['minItems']} or more " if "minItems" in schema else ""
    return f"a list of {least}{_NAMES.get(items.get('type'), ('', 'values'))[1]}{_limits(items)}"


def problem(schema: Any, value: Any, error: Any) -> tuple[list[str], str]:
    """The path from a value to where pydantic found an error, and what is wrong there."""
    place: list[Any] = []
    for part in error["loc"]:
        with suppress(LookupError, TypeError):  # a step that names one of several types is no place in the value
            value = value[part]
            place.append(part)
    steps = [f"[{part}]" if isinstance(part, int) else part for part in place]
    if error["type"].startswith("missing"):
        return [*steps, error["loc"][-1]], " is missing"
    if error["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        above = within(schema, place[:-1])
        known = [name for each in above.get("anyOf", [above]) for name in each.get("properties", ())]
        return steps, f": unknown key; allowed: {', '.join(known)}"
    if error["type"] == "value_error":
        return steps, f"{'.' if isinstance(value, Mapping) else ': '}{error['ctx']['error']}"
    return steps, f": {shown(value)} is not allowed; expected {allowed_values(within(schema, place))}"


def shown(value: Any) -> str:
    """A value as in YAML, cut if it is long."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _limits(schema: Mapping[str, Any]) -> str:
    """The limits of a number."""
    for names, words in _LIMITS.items():
        if all(name in schema for name in names):
            return words.format(*(schema[name] for name in names))
    return ""
