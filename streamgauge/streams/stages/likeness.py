"""Measures how alike a made stream and the profile are that its outages were fitted to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from streamgauge.base.units import PS, Duration
from streamgauge.catalog.artifacts import Artifact
from streamgauge.descriptions.streams import Experiment
from streamgauge.records.manifests import StreamManifest
from streamgauge.records.profile import ByPart, Profile, part_name
from streamgauge.records.validation import Disorder, Likeness
from streamgauge.streams.disorder.outage_fit import read_profile
from streamgauge.streams.stages import by_part
from streamgauge.streams.stages.workers import Workers

Bins = tuple[tuple[int, int, int], ...]


def measure(workers: Workers, stream: Artifact, experiment: Experiment) -> Likeness | None:
    """Compares a stream with the profile that its experiment names; None if it names none, or asks for duplicates.

    The parts of a stream are those of its rows, and a second row of an event would count.
    """
    outages = experiment.delay.outages
    if outages is None or outages.like is None or experiment.duplicated:
        return None
    given, made = read_profile(outages.like), stream.read(StreamManifest)
    parts = by_part.Parts(outages.column, outages.partitions or 1)
    return compare(outages.like, given, made, by_part.measure(workers, stream, parts, Duration(0), made.tick))


def compare(file: str, given: Profile, made: StreamManifest, parts: ByPart) -> Likeness:
    """Compares a stream, and the disorder of its parts, with a profile. Raises ValueError for one without parts."""
    if given.by_part is None:
        raise ValueError(f"{file}: a profile without parts")
    scale = PS[given.tick] / PS[made.tick]
    bins = tuple((round(low * scale), round(high * scale), count) for low, high, count in given.delay_histogram)
    edges = np.unique([edge for low, high, _ in (*bins, *made.observed_delay.histogram) for edge in (low, high)])
    ours, theirs = _longer(made.observed_delay.histogram, edges), _longer(bins, edges)
    late = given.out_of_order or 0
    before = Disorder(events=given.events, out_of_order=late, delay=given.delay, bursts=given.by_part.bursts)
    after = Disorder(
        events=made.events,
        out_of_order=made.achieved_out_of_order,
        delay=made.observed_delay.summary,
        bursts=parts.bursts,
    )
    shares = [
        {part_name(one.part): (one.out_of_order_in_all or 0) / max(1, of.out_of_order) for one in by.parts}
        for of, by in ((before, given.by_part), (after, parts))
    ]
    names = shares[0].keys() | shares[1].keys()
    return Likeness(
        profile=file,
        tick=given.tick,
        given=before,
        made=after,
        delay_distance=_distance(ours / max(1, made.achieved_out_of_order), theirs / max(1, before.out_of_order)),
        curve_distance=_distance(ours / max(1, made.events), theirs / max(1, given.events)),
        part_distance=sum(abs(shares[0].get(name, 0) - shares[1].get(name, 0)) for name in names) / 2,
    )


def _longer(bins: Bins, edges: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Number of delays above each edge, evenly within a bin."""
    if not bins:
        return np.zeros(len(edges))
    below, places = [0], [bins[0][0]]
    for low, high, count in bins:
        places += [low, high]
        below += [below[-1], below[-1] + count]
    return below[-1] - np.interp(edges, places, below)


def _distance(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    return float(np.abs(one - other).max(initial=0.0))
