"""The JSON Schema of the benchmark file, by which editors help."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import TypeAdapter

from streamgauge import config
from streamgauge.base.field_types import Model
from streamgauge.config.sections import benchmark_model
from tests.config.samples import SOUND
from tests.conftest import ROOT


def test_the_schema_is_one_that_editors_take() -> None:
    schema = config.schema()
    assert set(benchmark_model().model_fields) == set(schema["properties"])
    assert schema["additionalProperties"] is False
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize("file", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda file: file.stem)
def test_an_editor_finds_nothing_wrong_in_our_own_systems(file: Path) -> None:
    jsonschema.validate({**SOUND, "systems": yaml.safe_load(file.read_text()).get("systems", [])}, config.schema())


@pytest.mark.parametrize(
    ("system", "wrong"),
    [
        ({}, False),
        ({"master": "local[2]"}, False),
        ({"engine": "flink", "parallelism": 2}, False),
        ({"engine": "mine:Engine", "threads": 2}, False),
        ({"engine": "flink", "master": "local[2]"}, True),
        ({"parallelism": 2}, True),
        ({"engine": "sparrow"}, True),
    ],
)
def test_an_editor_knows_the_keys_of_each_engine(system: dict[str, Any], wrong: bool) -> None:
    raw = {**SOUND, "systems": [{"name": "s", **system}]}
    with pytest.raises(jsonschema.ValidationError) if wrong else nullcontext():
        jsonschema.validate(raw, config.schema())


def test_the_schema_describes_each_property_and_shows_defaults_that_can_be_written() -> None:
    schema = config.schema()
    for name, shown in {"Benchmark": schema, **schema["$defs"]}.items():
        named = [m for m in subclasses(Model) if m.__name__ == name]
        models = [benchmark_model()] if name == "Benchmark" else named
        for key, about in shown.get("properties", {}).items():
            assert about.get("description"), f"{name}.{key} has no description"
            for model in models:
                field = {field.alias or name: field for name, field in model.model_fields.items()}[key]
                if "default" in about and about["default"] is not None:
                    adapter = TypeAdapter(field.rebuild_annotation())
                    assert adapter.validate_python(about["default"]) == field.get_default(), f"{name}.{key}"


def subclasses(model: type[Model]) -> Iterator[type[Model]]:
    for child in model.__subclasses__():
        yield child
        yield from subclasses(child)


def test_every_key_is_on_the_page_of_the_configuration() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    schema = config.schema()
    models = {"Benchmark": schema, **schema["$defs"]}
    for name, model in models.items():
        for key in model.get("properties", {}):
            assert f"`{key}`" in page, f"docs/configuration.md does not name {key} of {name}"
