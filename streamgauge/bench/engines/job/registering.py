"""Registers the schemas of a job's records."""

from __future__ import annotations

from dataclasses import replace

from streamgauge.bench.driver.client import Connection
from streamgauge.bench.driver.system import TrialSetup
from streamgauge.config.schema_registry import REGISTERED, SchemaRegistry
from streamgauge.streams.kafka import schemas
from streamgauge.streams.kafka.records import Form
from streamgauge.streams.kafka.registry import Registry


def tried(settings: SchemaRegistry | None, probe: str) -> Registry | None:
    """The client of a registry that has taken a schema for the topic `probe`. Raises UserError."""
    if settings is None:
        return None
    registry = Registry(settings)
    registry.register(f"{probe}-value", "AVRO", '"string"')
    registry.remove([f"{probe}-value"])
    return registry


def registered(registry: Registry | None, form: Form, setup: TrialSetup, topic: str) -> Form:
    """The form of a topic's records, whose schema is registered where their format needs that. Raises UserError."""
    kind = REGISTERED.get(form.values)
    if kind is None or registry is None:
        return form
    with Connection(setup.endpoints[0], setup.attempt) as wire:
        schema = schemas.text_of(kind, wire.schema)
    return replace(form, schema_id=registry.register(f"{topic}-value", kind, schema))
