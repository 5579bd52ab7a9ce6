"""Keys of the artifacts that the stages build: what went in decides what comes out."""

from __future__ import annotations

from pathlib import Path

from streamgauge.base.places import place, small_text
from streamgauge.catalog.artifacts import Store, key_of
from streamgauge.catalog.source_files import stat_source
from streamgauge.config import Benchmark, Experiment
from streamgauge.streams.disorder.delays import table


def events_key(store: Store, benchmark: Benchmark) -> str:
    """Returns the key of the events of a source."""
    source = benchmark.source.model_dump(mode="json", exclude={"files", "expectations", "max_bad_fraction"})
    return key_of("events", store.source_fingerprint(benchmark.source.files), source, benchmark.scale)


def profile_key(store: Store, benchmark: Benchmark, *, full: bool = False) -> str:
    """Returns the key of the profile of these events."""
    return key_of("profile", events_key(store, benchmark), full)


def stream_key(store: Store, benchmark: Benchmark, experiment: Experiment) -> str:
    """Returns the key of an experiment's stream."""
    settings = experiment.model_dump(mode="json", exclude={"name", "delay"})
    # draws depend on the table alone: a changed formula, profile or user's function changes the key
    settings["delay"] = table(experiment.delay, benchmark.source.tick).ticks
    return key_of("stream", events_key(store, benchmark), settings)


def validation_key(store: Store, benchmark: Benchmark, experiment: Experiment, suites: Path) -> str:
    """Returns the key of the proof of a stream; suites: the folder of the expectations.

    Raises UserError for an expectation of the user's own that cannot be read.
    """
    texts = {file.name: file.read_text() for file in sorted(suites.glob("*.json"))}
    for file in benchmark.source.expectations:
        stat_source(file, "source.expectations")
        texts[f"own {file}"] = small_text(place(file))
    return key_of("validation", stream_key(store, benchmark, experiment), texts)
