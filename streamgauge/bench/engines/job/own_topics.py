"""Topics that were made for a job, by us or by the job itself, and their schemas; a list of them outlives us."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import write_json
from streamgauge.bench.driver.client import Connection
from streamgauge.bench.driver.system import TrialSetup
from streamgauge.descriptions.schema_registry import REGISTERED, SchemaRegistry
from streamgauge.streams.kafka import schemas
from streamgauge.streams.kafka.clients import Topics
from streamgauge.streams.kafka.records import Form
from streamgauge.streams.kafka.registry import Registry

#: how the names of our own topics and groups begin, and how those end that Kafka Streams makes
OURS, _STREAMS = "streamgauge-", ("-changelog", "-repartition")


class OwnTopics:
    """Makes and removes topics. file: takes their names. registry: has their schemas. Methods raise UserError."""

    def __init__(self, topics: Topics, file: Path, registry: Registry | None = None) -> None:
        self._topics, self._file, self._registry = topics, file, registry
        self._made: list[str] = []
        #: by application id, the topics of such a name that were there before the job
        self._before: dict[str, list[str]] = {}
        with suppress(OSError, ValueError, TypeError):
            self._made, before = json.loads(file.read_text())
            # beside a group of the user's own name, others may have made topics since
            self._before = {name: topics for name, topics in before.items() if name.startswith(OURS)}

    def make(self, name: str, partitions: int, *, by_event: bool = False) -> None:
        """Makes a topic, which `remove` removes; by_event: its records may bear any time since 1970."""
        self._made.append(name)
        self._keep()
        self._topics.make(name, partitions, by_event=by_event)

    def expect(self, application: str) -> None:
        """Notes that a job may make topics whose names begin with its id, such as `-changelog` and `-repartition`."""
        self._before[application] = sorted(name for name in self._topics.names() if name.startswith(f"{application}-"))
        self._keep()

    def remove(self) -> None:
        """Removes them all, with the consumer groups of that name; a broker that is away may be back the next time."""
        if not self._made:
            return
        groups = {topic.rpartition("-")[0] for topic in self._made}
        names = set(self._made)
        with suppress(UserError):
            there = self._topics.names()
            for application, before in (dict.fromkeys(groups, ()) | self._before).items():
                new = {name for name in there - set(before) if name.startswith(f"{application}-")}
                names |= new if application.startswith(OURS) else {name for name in new if name.endswith(_STREAMS)}
        if self._registry is not None:
            self._registry.remove([f"{name}-{part}" for name in names for part in ("key", "value")])
        if self._topics.remove(names, groups):
            self._made, self._before = [], {}
            self._file.unlink(missing_ok=True)

    def _keep(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_json(self._file, [self._made, self._before])


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
