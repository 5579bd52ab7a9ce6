"""The stage analyze (events -> profile): measures how disordered a source is, in a few tasks over row groups."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from streamgauge.base.errors import UserError
from streamgauge.catalog.artifacts import Artifact, Build, Store
from streamgauge.records.manifests import EventsManifest, ProfileManifest
from streamgauge.records.profile import Profile, RecordedDelays, Span
from streamgauge.streams.disorder import definitions
from streamgauge.streams.disorder.definitions import Times
from streamgauge.streams.disorder.profile import (
    LATE_OF,
    Part,
    Spread,
    Walk,
    enough_places,
    exact_quantiles,
    frequency_bins,
    frequency_summary,
    merge,
    watermark_curve,
    watermark_grid,
)
from streamgauge.streams.disorder.row_groups import (
    RowGroup,
    column_array,
    read,
    read_times,
    row_groups,
    shares,
    total_rows,
)
from streamgauge.streams.keys import Sourced, events_key, profile_key
from streamgauge.streams.sources import topics
from streamgauge.streams.stages import by_part
from streamgauge.streams.stages.workers import Workers

R = TypeVar("R")
log = logging.getLogger("streamgauge")
#: --full sorts on one machine: about 100 bytes an event
FULL_LIMIT = 50_000_000


class TooWide(Exception):
    """Two event times lie too far apart for their distance to be a 64-bit number."""


def run(workers: Workers, given: Sourced, store: Store, *, full: bool = False) -> Artifact:
    """Returns the profile artifact, built unless it is there. Raises UserError if ingest has not made its events.

    docs/profile.md describes its profile.json.
    """
    topics.require_parts(given.source)

    def make(build: Build) -> None:
        events = store.need("events", events_key(store, given), "ingest")
        try:
            profile = measure(workers, events, full=full)
            if given.source.by is not None:
                by, idle = by_part.Parts(given.source.by), given.source.idle
                parts = by_part.measure(workers, events, by, idle, profile.tick, profile)
                profile = profile.model_copy(update={"by_part": parts})
            if not given.source.is_merged:
                profile = profile.within_parts()
            for hint in profile.by_part.hints if profile.by_part else ():
                log.info("hint: %s", hint.text)
        except TooWide as problem:
            raise UserError(f"{', '.join(given.source.names)}: {problem}; check source.time") from None
        profile.write(build.path / "profile.json")
        build.manifest |= ProfileManifest(events=events.key, full=full).to_json()

    return store.made("profile", profile_key(store, given, full=full), make)


def measure(workers: Workers, events: Artifact, *, full: bool = False) -> Profile:
    """Measures the profile of an artifact with event times in stream order. Raises TooWide."""
    groups, manifest = row_groups(events.files()), events.read(EventsManifest)
    tick = manifest.tick
    low, high = min(g.time_min for g in groups), max(g.time_max for g in groups)
    if high - low >= 2**63:
        raise TooWide(f"event times span more than 2^63 {tick}, from {low} to {high} {tick}")
    grid = watermark_grid(tick)
    start, width, bins = frequency_bins(low, high, tick)

    def first_pass(share: list[RowGroup]) -> Part:
        return merge([Part.of(read_times([g]), g.before, grid, start, width, bins) for g in share])

    whole = merge(workers.each(shares(groups, workers.cores), first_pass))

    def delays(group: RowGroup) -> Times:
        return definitions.delays(read_times([group]), group.before)

    enough = enough_places(whole.events, whole.out_of_order)
    exact = exact_quantiles(whole.delays, _walk(workers, groups, delays), places=whole.delays.places() | enough)
    inversions, distance, interleaved = _full(groups) if full else (None, None, None)
    return Profile(
        events=whole.events,
        tick=tick,
        out_of_order=whole.out_of_order,
        quarantined=manifest.quarantined,
        adjacent_descents=whole.descents,
        runs=whole.descents + 1,
        inversions=inversions,
        distance=distance,
        interleaved=interleaved,
        delay=whole.delays.summary({name: exact[name] for name in whole.delays.places()}),
        delay_histogram=whole.delays.histogram(),
        watermark_curve=watermark_curve(grid, whole.late, whole.delays),
        enough_delay={**{name: exact.get(name, 0) for name in LATE_OF}, "none": whole.delays.largest},
        frequency=frequency_summary(whole.frequency, start, width, tick),
        event_time=Span(min=low, max=high),
        in_file=manifest.in_file,
        recorded_delay=_recorded_delay(workers, groups) if manifest.arrival else None,
        by_part=None,
    )


def _walk(workers: Workers, groups: Sequence[RowGroup], values: Callable[[RowGroup], Times]) -> Walk:
    """Returns a function of f, which runs f on the values of each row group in tasks and returns the results."""

    def walk(f: Callable[[Times], R], /) -> list[R]:
        return workers.each(groups, lambda group: f(values(group)))

    return walk


def _full(groups: Sequence[RowGroup]) -> tuple[int, int, int]:
    """Inversions, distance, interleaved: these need the whole stream in one place (Chandramouli et al., ICDE 2018)."""
    if total_rows(groups) > FULL_LIMIT:
        raise UserError(
            f"--full: found {total_rows(groups)} events, allowed: {FULL_LIMIT}, since inversions, distance and "
            "interleaved need all of them on one machine; leave --full out"
        )
    times = read_times(groups)
    return definitions.inversions(times), definitions.distance(times), definitions.interleaved(times)


def _recorded_delay(workers: Workers, groups: Sequence[RowGroup]) -> RecordedDelays:
    """Summary of arrival − event time, in ticks, where a row has both: negative ones are counted, never dropped."""

    def recorded(group: RowGroup) -> tuple[Times, int]:
        table = read([group], ["event_time", "arrival_time"])
        known = table.filter(table.column("arrival_time").is_valid())
        if not known.num_rows:
            return np.zeros(0, np.int64), table.num_rows
        values = column_array(known, "arrival_time") - column_array(known, "event_time")
        return values, table.num_rows - known.num_rows

    def first_pass(share: list[RowGroup]) -> tuple[Spread, int]:
        spread, missing = Spread(), 0
        for group in share:
            values, absent = recorded(group)
            spread, missing = spread + Spread.of(values), missing + absent
        return spread, missing

    parts = workers.each(shares(groups, workers.cores), first_pass)
    spread = sum((part for part, _ in parts), Spread())
    walk = _walk(workers, groups, lambda group: recorded(group)[0])
    summary = spread.summary(exact_quantiles(spread, walk))
    missing = sum(missing for _, missing in parts)
    return RecordedDelays(**dict(summary), negative=spread.negative, missing=missing)
