"""Keys of the artifacts that the stages build: what went in decides what comes out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from streamgauge.base.places import place, text_of_user
from streamgauge.catalog.artifacts import Store, key_of
from streamgauge.catalog.source_files import stat_source
from streamgauge.descriptions.source import FORMATS, Source
from streamgauge.descriptions.streams import Experiment
from streamgauge.streams.disorder.outages import delays_of


@dataclass(frozen=True)
class Scaled:
    """A source without a benchmark, and the share of it that is taken."""

    source: Source
    scale: float = 1.0


class Sourced(Protocol):
    """A source, and the share of it that is taken: they decide the events. A benchmark has both."""

    @property
    def source(self) -> Source: ...

    @property
    def scale(self) -> float: ...


def events_key(store: Store, given: Sourced) -> str:
    """Key of the events of a source; reads files whose hash the store does not know. Raises UserError."""
    apart = {"files", "expectations", "max_bad_fraction", "by", "idle", "kafka"}
    source = given.source.model_dump(mode="json", exclude=apart)
    if (topic := given.source.kafka) is not None:  # the id tells the topic, whatever its address
        source["kafka"] = topic.model_dump(mode="json", include={"values", "writer_schema", "pinned"})
    made_by = [package] if (package := FORMATS.version(given.source.format)) else []
    return key_of("events", store.source_fingerprint(given.source.files), source, given.scale, *made_by)


def profile_key(store: Store, given: Sourced, *, full: bool = False) -> str:
    by = [given.source.by, str(given.source.idle)] if given.source.by is not None else []
    return key_of("profile", events_key(store, given), full, *by)


def stream_key(store: Store, given: Sourced, experiment: Experiment) -> str:
    """Key of an experiment's stream. Raises UserError, also for delays that are unusable."""
    settings = experiment.model_dump(mode="json", exclude={"name", "delay"})
    # draws depend on these alone: a changed formula, profile or user's function changes the key
    delay = delays_of(experiment.delay, given.source.tick)
    settings["delay"] = [delay.ticks, delay.record.to_json()] if delay.record else delay.ticks
    return key_of("stream", events_key(store, given), settings)


def validation_key(store: Store, given: Sourced, experiment: Experiment, suites: Path) -> str:
    """Returns the key of the proof of a stream; suites: the folder of the expectations.

    Raises UserError for a user's suite that is not there, or is no UTF-8 text.
    """
    texts = {file.name: file.read_text() for file in sorted(suites.glob("*.json"))}
    for file in given.source.expectations:
        stat_source(file, "source.expectations")
        texts[f"own {file}"] = text_of_user(place(file))
    return key_of("validation", stream_key(store, given, experiment), texts)
