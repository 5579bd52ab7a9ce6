"""Describes mistakes in a benchmark file or in options: each by its place, what was found, and what is allowed."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from streamgauge.base.errors import Mistakes

M = TypeVar("M", bound=BaseModel)
#: a key's path within the file, such as ("experiments", 0, "target_percent")
Path = tuple[int | str, ...]
_MOST_TEXT = 80
_KINDS = {
    "text": "string_type",
    "a whole number": "int_type int_parsing int_from_float",
    "a whole number below 2^63": "int_parsing_size",
    "a number": "float_type float_parsing",
    "a finite number": "finite_number",
    "true or false": "bool_type bool_parsing",
    "a list": "tuple_type list_type set_type",
    "keys with values": "dict_type model_type model_attributes_type",
}
_TYPES = {kind: words for words, kinds in _KINDS.items() for kind in kinds.split()}
_BOUNDS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}
_NUMBERS = {"integer", "number"}


def check(model: type[M], raw: object, place: Callable[[Path], str]) -> M:
    """Returns the validated model. Raises Mistakes, one line each. place: names a path for people."""
    problems: dict[Path, str] = {}
    checked = None
    if _has_boolean(raw):
        booleans = _booleans(raw, _schema(model), _schema(model), ())
        problems = {path: f"found {_shown(value)}, allowed: a number" for path, value in booleans}
    try:
        checked = model.model_validate(raw)
    except ValidationError as problem:
        # pydantic tells a list with a bad item as too short as well
        errors = [e for e in problem.errors() if e["type"] != "too_short"] or problem.errors()
        meant: set[Path] = set()
        schema = _schema(model)
        for error in errors:
            # the mark of a form (descriptions/source.py) is no key
            error["loc"] = path = tuple(part for part in error["loc"] if not str(part).startswith("~"))
            near = _near(error, schema, raw)
            meant |= {(*path[:-1], near)} if near else set()
            problems.setdefault(path, f"unknown key; did you mean {near}?" if near else _message(error, schema, raw))
        missing = {error["loc"] for error in errors if error["type"] == "missing"}
        for path in meant & missing:  # the misspelt key tells it
            del problems[path]
    if checked is None or problems:
        lines = ((place(path), message) for path, message in problems.items())
        raise Mistakes([": ".join(filter(None, line)) for line in lines])
    return checked


@cache  # to make it takes longer than to validate a file: it is asked for only where it is needed
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def _has_boolean(raw: object) -> bool:
    if isinstance(raw, dict | list | tuple):
        return any(map(_has_boolean, raw.values() if isinstance(raw, dict) else raw))
    return isinstance(raw, bool)


def _near(error: ErrorDetails, schema: Mapping[str, Any], raw: object) -> str | None:
    """The allowed key that an unknown one resembles."""
    *place, key = error["loc"] or ("",)
    if error["type"] != "extra_forbidden" or _of_another_kind(key, place, schema, raw):
        return None
    close = difflib.get_close_matches(str(key), _allowed_keys(schema, place, raw), 1, 0.7)
    return close[0] if close else None


def _message(error: ErrorDetails, schema: Mapping[str, Any], raw: object) -> str:
    kind, given = error["type"], error.get("input")
    message = str(error["msg"]).removeprefix("Value error, ")
    if kind == "extra_forbidden":
        *place, key = error["loc"]
        other = _of_another_kind(key, place, schema, raw) or "unknown key"
        return f"{other}; allowed here: {', '.join(_allowed_keys(schema, place, raw))}"
    if kind == "missing":
        return "this key is missing"
    if "found" in message:
        return message
    if kind in _BOUNDS:
        name, word = _BOUNDS[kind]
        message = f"{word} {error['ctx'][name]:g}"
    if kind in ("string_too_long", "string_too_short"):
        most = kind == "string_too_long"
        message = f"at {'most' if most else 'least'} {error['ctx']['max_length' if most else 'min_length']} characters"
    if kind == "string_pattern_mismatch":
        message = f"text that matches {error['ctx']['pattern']}"
    message = _TYPES.get(kind, message.removeprefix("Input should be "))
    simple = not isinstance(given, dict | list)
    return f"found {_shown(given)}, allowed: {message}" if simple or kind in _TYPES else message


def _shown(value: object) -> str:
    """Text of a value as a person writes it; a long one is cut."""
    if isinstance(value, dict):
        return "keys with values" if value else "{}"
    if isinstance(value, list | tuple):
        return "a list"
    text = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}… ({len(text):,} characters)"


def _booleans(raw: object, node: Any, schema: Any, path: Path) -> Iterator[tuple[Path, bool]]:
    """Yields each true or false where a number belongs: Python takes them for 1 and 0."""
    node = _resolve(node, schema, raw)
    if isinstance(raw, bool):
        kinds = node.get("type", ())
        if _NUMBERS & ({kinds} if isinstance(kinds, str) else set(kinds)):
            yield path, raw
    elif isinstance(raw, dict):
        for key, value in raw.items():
            yield from _booleans(value, node.get("properties", {}).get(key, {}), schema, (*path, key))
    elif isinstance(raw, list):
        for number, value in enumerate(raw):
            yield from _booleans(value, node.get("items", {}), schema, (*path, number))


def _allowed_keys(schema: Mapping[str, Any], place: Sequence[int | str], raw: object) -> list[str]:
    """Keys that are allowed where an error lies."""
    node, there = _at(place, schema, raw)
    return sorted(_resolve(node, schema, there).get("properties", {}))


def _of_another_kind(key: int | str, place: Sequence[int | str], schema: Mapping[str, Any], raw: object) -> str | None:
    """Message for a key that belongs to groups of another kind, such as systems with another engine."""
    node, there = _at(place, schema, raw)
    kinds = node.get("discriminator")
    if kinds is None:
        return None
    name, mine = kinds["propertyName"], _resolve(node, schema, there)
    others = [kind for kind, ref in kinds["mapping"].items() if key in _resolve({"$ref": ref}, schema)["properties"]]
    chosen = mine["properties"][name].get("const")
    return f"not a key of {name} {chosen}, but of {' and '.join(others)}" if others else None


def _at(place: Sequence[int | str], schema: Mapping[str, Any], raw: object) -> tuple[Any, object]:
    """Walks a place through the schema and through what was given; returns what both have there."""
    node: Any = schema
    for part in place:
        node = _resolve(node, schema, raw)
        node = node.get("items", {}) if isinstance(part, int) else node.get("properties", {}).get(part, {})
        raw = raw.get(part) if isinstance(raw, dict) else raw[int(part)] if isinstance(raw, list) else None
    return node, raw


def _resolve(node: Any, schema: Any, raw: object = None) -> Any:
    while True:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
        elif "anyOf" in node:
            node = next((n for n in node["anyOf"] if n.get("type") != "null"), {})
        elif "discriminator" in node:
            node = _chosen(node, schema, raw)
        else:
            return node


def _chosen(node: Any, schema: Any, raw: object) -> Any:
    """The kind of a group that one of its keys names: without that key the kind that does not require it."""
    name, mapping = node["discriminator"]["propertyName"], node["discriminator"]["mapping"]
    given = raw.get(name) if isinstance(raw, dict) else None
    if given is None:
        return next(kind for kind in node["oneOf"] if name not in _resolve(kind, schema).get("required", ()))
    return {"$ref": mapping[given]} if isinstance(given, str) and given in mapping else node["oneOf"][-1]


def in_file(file: str, text: str) -> Callable[[Path], str]:
    """Returns a function that names a path by file, line, column and key. text: YAML or JSON."""

    @cache  # only a file with mistakes is read a second time
    def places() -> dict[Path, tuple[int, int]]:
        try:
            return dict(_places(yaml.compose(text, yaml.SafeLoader), ()))
        except (yaml.YAMLError, RecursionError):
            return {}

    def place(path: Path) -> str:
        key = ".".join(map(str, path))
        known = next((path[:n] for n in range(len(path), 0, -1) if path[:n] in places()), None)
        at = "" if known is None else ":{}:{}".format(*places()[known])
        return f"{file}{at}: {key}" if key else f"{file}{at}"

    return place


def _places(node: yaml.Node | None, path: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    """Yields line and column, from 1, of each key and list item."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, key.value)
            yield here, (key.start_mark.line + 1, key.start_mark.column + 1)
            yield from _places(value, here)
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            here = (*path, number)
            yield here, (item.start_mark.line + 1, item.start_mark.column + 1)
            yield from _places(item, here)
