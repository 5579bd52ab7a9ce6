"""events -> profile: how disordered a source is, measured by a few tasks that each walk some row groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streamgauge import disorder
from streamgauge.artifacts import Artifact, Store, write_json
from streamgauge.config import Benchmark
from streamgauge.disorder import Times
from streamgauge.errors import UserError
from streamgauge.profiling import (
    Part,
    Spread,
    frequency_bins,
    frequency_summary,
    merge,
    pick_quantiles,
    values_in,
    watermark_grid,
)
from streamgauge.rowgroups import RowGroup, column_array, read, read_times, row_groups, shares, total_rows
from streamgauge.spark.tasks import each
from streamgauge.units import Tick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: --full sorts on one machine: about 100 bytes an event
FULL_LIMIT = 50_000_000


def run(spark: SparkSession, benchmark: Benchmark, store: Store, *, full: bool = False) -> Artifact:
    """The profile artifact; profile.json as in docs/profile.md. Raises UserError without events."""
    key = store.profile_key(benchmark, full=full)
    if found := store.find("profile", key):
        return found
    events = store.need("events", store.events_key(benchmark), "ingest")
    with store.building("profile", key) as build:
        profile = measure(spark, events, full=full)
        write_json(build.path / "profile.json", profile)
        build.manifest |= {"events": events.key, "full": full}
    return replace(store.need("profile", key, "analyze"), reused=False)


def measure(spark: SparkSession, events: Artifact, *, full: bool = False) -> dict[str, Any]:
    """The profile of an artifact with event times in stream order."""
    groups = row_groups(events.files())
    tick: Tick = events.manifest["tick"]
    low, high = min(g.time_min for g in groups), max(g.time_max for g in groups)
    if high - low >= 2**63:
        raise UserError(f"{events.path}: event times span more than 2^63 {tick}; check the time column's unit")
    grid = watermark_grid(tick)
    start, width, bins = frequency_bins(low, high, tick)

    def first_pass(share: list[RowGroup]) -> Part:
        return merge([Part.of(read_times([g]), g.before, grid, start, width, bins) for g in share])

    whole = merge(each(spark, shares(groups, _tasks(spark)), first_pass))
    wanted = sorted({bucket for bucket, _ in whole.delays.ranks().values()}) if whole.out_of_order else []

    def second_pass(share: list[RowGroup]) -> list[dict[int, Times]]:
        return [values_in(disorder.delays(read_times([g]), g.before), wanted) for g in share]

    found = each(spark, shares(groups, _tasks(spark)), second_pass) if wanted else []
    delay = whole.delays.summary(pick_quantiles(whole.delays, (part for parts in found for part in parts)))
    late = [count for count in whole.late.tolist() if count] + [0]
    return {
        "events": whole.events,
        "tick": tick,
        "out_of_order": whole.out_of_order,
        "quarantined": events.manifest.get("quarantined", 0),
        "adjacent_descents": whole.descents,
        "runs": whole.descents + 1,
        **(_full(groups) if full else dict.fromkeys(("inversions", "distance", "interleaved"))),
        "delay": delay,
        "delay_histogram": whole.delays.histogram(),
        "watermark_curve": [list(step) for step in zip(grid, late, strict=False)],
        "frequency": frequency_summary(whole.frequency, start, width, tick),
        "event_time": {"min": low, "max": high},
        "recorded_delay": _recorded_delay(spark, groups) if events.manifest.get("arrival") else None,
    }


def _tasks(spark: SparkSession) -> int:
    return int(spark.sparkContext.defaultParallelism)


def _full(groups: Sequence[RowGroup]) -> dict[str, int]:
    """The measures that need the whole stream in one place (Chandramouli et al., ICDE 2018)."""
    if total_rows(groups) > FULL_LIMIT:
        raise UserError(
            f"--full: found {total_rows(groups)} events, allowed: {FULL_LIMIT}, since inversions, distance and "
            "interleaved need all of them on one machine; leave --full out"
        )
    times = read_times(groups)
    return {
        "inversions": disorder.inversions(times),
        "distance": disorder.distance(times),
        "interleaved": disorder.interleaved(times),
    }


def _recorded_delay(spark: SparkSession, groups: Sequence[RowGroup]) -> dict[str, Any]:
    """Arrival − event time, in ticks, where the source has both: negative ones are counted, never dropped."""

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

    parts = each(spark, shares(groups, _tasks(spark)), first_pass)
    spread = sum((part for part, _ in parts), Spread())
    wanted = sorted({bucket for bucket, _ in spread.ranks().values()}) if spread.count else []

    def second_pass(share: list[RowGroup]) -> list[dict[int, Times]]:
        return [values_in(recorded(group)[0], wanted) for group in share]

    found = each(spark, shares(groups, _tasks(spark)), second_pass) if wanted else []
    summary = spread.summary(pick_quantiles(spread, (part for parts in found for part in parts)))
    return {**summary, "negative": spread.negative, "missing": sum(missing for _, missing in parts)}
