"""Disorder that a source has already, and how much more it allows, before anything is generated.

A source small enough to be read whole, or a profile of all its events, tells for sure. Its first lines leave a doubt.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamgauge.base.errors import Infeasible
from streamgauge.base.units import Tick
from streamgauge.catalog.artifacts import ScratchStore, Store
from streamgauge.catalog.source_files import stat_source
from streamgauge.descriptions.source import Source
from streamgauge.descriptions.streams import Experiment
from streamgauge.records.manifests import EventsManifest
from streamgauge.records.profile import Hint, Profile
from streamgauge.streams.disorder.chunks import chunks
from streamgauge.streams.disorder.definitions import out_of_order
from streamgauge.streams.disorder.generation import Solution, count_chunk, require_room, solve, too_low
from streamgauge.streams.disorder.outages import delays_of
from streamgauge.streams.disorder.row_groups import RowGroup, row_groups
from streamgauge.streams.keys import Scaled, profile_key, stream_key
from streamgauge.streams.stages import ingest
from streamgauge.streams.stages.workers import Forked
from streamgauge.streams.text.ranges import packing
from streamgauge.streams.text.sample import Sample

if TYPE_CHECKING:
    from streamgauge.config import Benchmark

#: a source of so many bytes is read whole within about a second; packed files have about a tenth of their rows' bytes
SMALL_BYTES, UNPACKED = 16 << 20, 10
#: an experiment of which only the disorder of the source counts
AS_IT_CAME = Experiment(name="as_it_came", target="source")


@dataclass(frozen=True)
class Disorder:
    """Number of events that are out of order, of all events of a source, or of those in its first lines."""

    out_of_order: int
    events: int
    whole: bool

    @property
    def percent(self) -> float:
        return 100 * self.out_of_order / max(1, self.events)

    def __str__(self) -> str:
        which = f"{'all' if self.whole else 'the first'} {self.events:,} events" if self.events != 1 else "1 event"
        return f"{self.out_of_order:,} of {which} ({self.percent:.4g} %)"


def is_small(source: Source) -> bool:
    """True if the source's files can be read whole at once."""
    sizes = (stat_source(file).st_size * (UNPACKED if source.is_typed or packing(file) else 1) for file in source.files)
    return bool(source.files) and sum(sizes) <= SMALL_BYTES


@contextmanager
def whole(source: Source, scale: float = 1.0) -> Iterator[tuple[list[RowGroup], tuple[Hint, ...]]]:
    """Yields all events of a small source, in scratch files, with hints. Raises UserError for too many bad lines."""
    with tempfile.TemporaryDirectory(prefix="streamgauge-") as folder:
        events = ingest.run(Forked(), Scaled(source, scale), ScratchStore(Path(folder)), lines=False)
        yield row_groups(events.files()), events.read(EventsManifest).in_file.hints


def solution(groups: Sequence[RowGroup], experiment: Experiment, tick: Tick) -> Solution:
    """Solution that generating the experiment's stream of these few events would take. Raises Infeasible."""
    delay = delays_of(experiment.delay, tick)
    require_room(groups, delay, experiment.delay.max)
    (chunk,) = chunks(groups, 1)
    counts = count_chunk(groups, chunk, delay, experiment.seed)
    closest = experiment.on_infeasible == "closest"
    return solve(groups, [([chunk], counts)], delay, experiment.seed, experiment.fraction, closest=closest)


def disorder(groups: Sequence[RowGroup], tick: Tick) -> Disorder:
    reached = solution(groups, AS_IT_CAME, tick)
    return Disorder(reached.source_out_of_order, reached.events, whole=True)


def of_sample(looked: Sample, source: Source) -> Disorder:
    """Disorder of the first lines, in the order that the source is to have."""
    times = looked.parsed.events["event_time"].to_numpy()
    if source.order == "event_time":
        times = np.sort(times)
    elif source.order == "arrival":
        order = looked.parsed.events.sort_by([("arrival_time", "ascending"), ("seq", "ascending")])
        times = order["event_time"].to_numpy()
    return Disorder(int(out_of_order(times).sum()), len(times), whole=False)


@dataclass(frozen=True)
class Reached:
    """Doubts whether targets can be reached, and hints of all events, if they were read."""

    doubts: tuple[str, ...] = ()
    hints: tuple[Hint, ...] | None = None


def check(benchmark: Benchmark, store: Store, looked: Sample | None, *, hashed: bool, hints: bool = False) -> Reached:
    """Doubts and hints. Raises Infeasible for a target that cannot be reached, if all events tell so.

    hashed: the source's hash is known, or quickly known, hence also what the store has of it; hints: a small source
    is read whole for them, too.
    """
    targets = [e for e in benchmark.experiments if e.fraction is not None and e.on_infeasible == "error"]
    if hashed:
        targets = [e for e in targets if store.find("stream", stream_key(store, benchmark, e)) is None]
    if looked is None or not (targets or hints):
        return Reached()
    profile = store.find("profile", profile_key(store, benchmark)) if hashed else None
    tick = benchmark.source.tick
    if profile is not None and not (targets and is_small(benchmark.source)):
        known = Profile.read(profile.file("profile.json"), "run the stage analyze again")
        for experiment in targets:
            with _named(experiment):
                too_low(experiment.fraction or Fraction(0), known.out_of_order or 0, known.events)
    elif is_small(benchmark.source):
        with whole(benchmark.source, benchmark.scale) as (groups, whole_hints):
            for experiment in targets:
                with _named(experiment):
                    solution(groups, experiment, tick)
        return Reached(hints=whole_hints)
    else:
        seen = of_sample(looked, benchmark.source)
        return Reached(
            tuple(
                f"warning: experiment {e.name}: found target {e.wanted}, but {seen} are out of order already; if all "
                "are like these, begin with order: event_time, or take target: source"
                for e in targets
                if (e.fraction or 0) * 100 < seen.percent
            )
        )
    return Reached()


@contextmanager
def _named(experiment: Experiment) -> Iterator[None]:
    """Puts the experiment's name before the message of an unreachable target."""
    try:
        yield
    except Infeasible as problem:
        raise Infeasible(f"experiment {experiment.name}: {problem}") from None
