"""Rules by which a secret is known, and masked at every place of the benchmark file's schema."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.base import secrets
from streamgauge.config import schema
from tests.config.marked import SECRET_NAMES

OTHER_NAMES = (
    "url_variable", "key", "sasl.username", "spark.sql.shuffle.partitions", "fs.s3a.aws.credentials.provider",
    "password_variable", "tokenizer", "monkey", "compass", "ssl.truststore.location", "spark.authenticate.enabled",
)  # fmt: skip


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert secrets.masked({name: "hunter2"}) == {name: "***"}
    assert secrets.masked({name: "${VARIABLE}"}) == {name: "${VARIABLE}"}


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_what_is_none_stays(name: str) -> None:
    assert secrets.masked({name: "hunter2"}) == {name: "hunter2"}


@pytest.mark.parametrize(
    ("key", "text", "shown"),
    [
        ("master", "s3a://me:SE/CR@bucket/x", "s3a://***@bucket/x"),
        ("master", "https://token@host:1/x?sig=abc&n=1", "https://***@host:1/x?sig=***&n=1"),
        ("master", "abfss://container@account.dfs.core.windows.net/x", None),
        ("url", "https://hooks.example.org/services/T0/B0/x", "https://hooks.example.org/***"),
        ("url", "http://127.0.0.1:8080", None),
        ("conf", "-Da=1 -Dkey.storePassword=zz -Xmx2g", "-Da=1 -Dkey.storePassword=*** -Xmx2g"),
        ("conf", "jdbc:postgresql://h/db?user=me&password=q", "jdbc:postgresql://h/db?user=me&password=***"),
        ("conf", 'x required username="me" password="q q";', 'x required username="me" password=***;'),
        ("conf", 'opts="-Ddb.password=q -Da=b"', 'opts="-Ddb.password=*** -Da=b"'),
        ("conf", '{"client_secret": "q", "a": "b"}', '{"client_secret": ***, "a": "b"}'),
        ("command", ["./job", "--db-password", "q", "--in", "{input}"],
         ["./job", "--db-password", "***", "--in", "{input}"]),
        ("command", ["sh", "-c", "job --token q -v"], ["sh", "-c", "job --token *** -v"]),
        ("command", ["curl", "-H", "Authorization: Bearer q q"], ["curl", "-H", "Authorization: ***"]),
        ("command", ["job", "API_KEY=q", "--max=5"], ["job", "API_KEY=***", "--max=5"]),
        ("environment", {"A": "x y", "N": "4", "V": "{version}", "R": "${HOME}"},
         {"A": "***", "N": "4", "V": "{version}", "R": "${HOME}"}),
        ("options", {"n": 123456789, "deep": [{"a": "q"}], "on": True},
         {"n": "***", "deep": [{"a": "***"}], "on": True}),
        ("environment", "hunter2", "***"),
        ("headers_from_env", {"Authorization": "NAME"}, None),
    ],
)  # fmt: skip
def test_a_secret_is_known_by_its_place_or_form(key: str, text: Any, shown: Any) -> None:
    once = secrets.masked({key: text})
    assert once == {key: text if shown is None else shown}
    assert secrets.masked(once) == once


@pytest.mark.parametrize(
    "piece", ["a=", "-", "a-", "x://", "a://b:", "?token=", "token:", '"token":', "--token ", "a:", "@", "/a"]
)
def test_a_hostile_text_takes_no_time(piece: str) -> None:
    began = time.process_time()
    secrets.learn({"description": piece * 200_000, "url": f"http://h/{piece * 100_000}"})
    secrets.masked_message(piece * 200_000)
    assert time.process_time() - began < 20


# -- every place of the benchmark file's schema

Marker = Callable[[], str]


def filled(node: Any, whole: Any, marker: Marker, depth: int = 0) -> Any:
    """A value for a schema, with a marker in every text that may hold a secret."""
    if "$ref" in node:
        return filled(whole["$defs"][node["$ref"].rsplit("/", 1)[1]], whole, marker, depth + 1) if depth < 12 else None
    for kind in ("anyOf", "oneOf", "allOf"):
        if kind in node:
            return [filled(one, whole, marker, depth + 1) for one in node[kind] if one.get("type") != "null"]
    if "enum" in node or "const" in node or "pattern" in node:
        return None
    if node.get("type") == "object" or "properties" in node:
        made = {name: filled(one, whole, marker, depth + 1) for name, one in node.get("properties", {}).items()}
        if node.get("additionalProperties", False) is not False:
            made |= {name: marker() for name in SECRET_NAMES}
        return made
    if node.get("type") == "array":
        return [filled(node.get("items") or {"type": "string"}, whole, marker, depth + 1) for _ in range(2)]
    return f"jdbc:x://me:{marker()}@host/db?token={marker()}" if node.get("type") == "string" else None


def texts(value: Any) -> Iterator[str]:
    yield json.dumps(value)
    yield yaml.safe_dump(value, width=10**9)


def test_no_place_of_the_schema_shows_a_secret() -> None:
    number = count()
    made = filled(schema(), schema(), lambda: f"Mark{next(number):04}er")
    for node in made["systems"], made["metrics"], made["nightly"]:
        assert "Mark" in json.dumps(node)
    named = json.dumps(made).count("Mark")
    assert named > 200
    assert [text for text in texts(secrets.masked(_without_variables(made))) if "Mark" in text] == []


def _without_variables(value: Any) -> Any:
    """The settings without names of variables, which are none of the secrets."""
    if isinstance(value, dict):
        return {key: _without_variables(one) for key, one in value.items() if key != "headers_from_env"}
    return [_without_variables(one) for one in value] if isinstance(value, list) else value


LEAVES = st.text() | st.integers() | st.none() | st.booleans()
KEYS = st.sampled_from(["conf", "url", "command", "environment", "password", "options", "name"])


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)))
def test_masking_ends_anywhere_and_twice_is_as_once(settings: Any) -> None:
    once = secrets.masked(settings)
    assert secrets.masked(once) == once
    secrets.learn(settings)
    assert secrets.restored(once, settings) == settings or "***" in json.dumps(settings)


def test_a_secret_of_small_letters_alone_is_masked_and_a_word_that_contains_it_stays() -> None:
    secrets.know(["correcthorsebattery"])
    record = {"password": "correcthorsebattery", "kind": "correcthorsebattery_kind", "why": "a correcthorsebattery"}
    assert secrets.shown(record) == {"password": "***", "kind": "correcthorsebattery_kind", "why": "a ***"}
