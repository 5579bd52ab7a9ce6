"""The stage generate (events + experiment -> stream): counts thresholds, solves for the target, writes.

Counting and writing are done by a few tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.base.schemas import stream_schema
from streamgauge.catalog.artifacts import Artifact, Build, Store
from streamgauge.descriptions.source import Source
from streamgauge.descriptions.streams import Experiment
from streamgauge.records.manifests import EventsManifest, StreamManifest
from streamgauge.streams.disorder import generation
from streamgauge.streams.disorder.chunks import Chunk, chunks
from streamgauge.streams.disorder.hash import join
from streamgauge.streams.disorder.outages import delays_of
from streamgauge.streams.disorder.profile import Spread
from streamgauge.streams.disorder.row_groups import RowGroup, row_groups, total_rows
from streamgauge.streams.keys import Sourced, events_key, stream_key
from streamgauge.streams.nexmark.generator import HEADER
from streamgauge.streams.sources import topics
from streamgauge.streams.stages import stream_texts
from streamgauge.streams.stages.stream_writer import Writer
from streamgauge.streams.stages.workers import Workers, shared
from streamgauge.streams.text.parse import names_in
from streamgauge.streams.text.splits import header

#: rows of a chunk: a task's arrays are then small enough for the allocator to use the same pages again
CHUNK_ROWS = 120_000
#: counts of so many chunks or more are added up where they are made. Each sum takes 256 KiB in the driver, so there
#: are about so many of them at most, or one for each core
PART_CHUNKS, MOST_PARTS = 16, 64
#: rows of a Parquet file, which has those of whole chunks, and so only about as many
FILE_ROWS = 480_000
#: a chunk may grow up to this so as to span the longest delay; beyond it, chunks repeat each other's work instead
MAX_CHUNK_ROWS = 1_000_000


def run(
    workers: Workers,
    given: Sourced,
    store: Store,
    experiment: Experiment,
    *,
    chunk_rows: int = CHUNK_ROWS,
) -> Artifact:
    """Returns the stream artifact, built unless it is there.

    Raises Infeasible (nothing is written), or UserError for unusable delays and events without an order.
    """
    topics.require_order(given.source)

    def make(build: Build) -> None:
        build.manifest |= write_stream(
            workers,
            store.need("events", events_key(store, given), "ingest"),
            given.source,
            experiment,
            build.path,
            outputs={"parquet", *experiment.outputs},  # later stages read Parquet
            chunk_rows=chunk_rows,
        ).to_json()

    return store.made("stream", stream_key(store, given, experiment), make)


def write_stream(
    workers: Workers,
    events: Artifact,
    source: Source,
    experiment: Experiment,
    directory: Path,
    *,
    outputs: Collection[str],
    chunk_rows: int = CHUNK_ROWS,
) -> StreamManifest:
    """Writes the stream's files in those formats (see descriptions.streams.Output); returns its manifest."""
    groups, given = row_groups(events.files()), events.read(EventsManifest)
    delay = delays_of(experiment.delay, given.tick)
    generation.require_room(groups, delay, experiment.delay.max)
    head = _header(source) if any(one.startswith("csv") for one in outputs) else b""
    cuts = chunks(groups, _chunk_count(groups, delay.maximum, chunk_rows, workers))
    shares = shared(list(enumerate(cuts)), min(workers.cores, len(cuts)))
    seed = experiment.seed

    size = max(PART_CHUNKS, -(-len(cuts) // MOST_PARTS))
    parts = [share[at : at + size] for share in shares for at in range(0, len(share), size)]

    def count(part: Sequence[tuple[int, Chunk]]) -> generation.ChunkCounts:
        first, *rest = (generation.count_chunk(groups, chunk, delay, seed) for _, chunk in part)
        return sum(rest, first)

    solution = generation.solve(
        groups,
        [([chunk for _, chunk in part], sums) for part, sums in zip(parts, workers.each(parts, count), strict=True)],
        delay,
        seed,
        experiment.fraction,
        closest=experiment.on_infeasible == "closest",
    )
    schema = stream_schema(given.columns, arrival=given.arrival)
    writer = Writer(
        directory, groups, delay, seed, solution.selection, experiment.duplicated, schema, outputs, source, head,
        max(1, FILE_ROWS * len(cuts) // max(1, total_rows(groups))),
    )  # fmt: skip
    written = workers.each(shares, writer)

    rows, late = sum(w.tally.rows for w in written), sum(w.tally.late for w in written)
    duplicates = sum(w.tally.duplicates for w in written)
    if rows != solution.events or late != solution.aimed:
        raise UserError(
            f"{events.path}: found {rows} rows, {late} late, expected {solution.events}, {solution.aimed}; "
            "the events changed while they were read; run again"
        )
    texts: dict[str, tuple[str, ...]] = {"csv_files": ()}
    for one in (one for one in stream_texts.FILES if one in outputs):
        names = [name for w in written for name in w.texts[one]]
        if one != "csv-parts":
            names = [stream_texts.join(directory, names, f"stream.{stream_texts.ENDINGS[one]}")] if names else []
        texts[stream_texts.FILES[one]] = tuple(names)
    delayed = sum((w.tally.delayed for w in written), Spread())
    observed = sum((w.tally.observed for w in written), Spread())
    return StreamManifest(
        events_key=events.key,
        tick=given.tick,
        columns=given.columns,
        arrival=given.arrival,
        seed=seed,
        target_percent=experiment.target_percent,
        events=rows,
        quarantined=given.quarantined,
        source_out_of_order=solution.source_out_of_order,
        target_out_of_order=solution.target,
        aimed_out_of_order=solution.aimed,
        achieved_out_of_order=late,
        feasible_max=solution.maximum,
        infeasible=solution.aimed != solution.target,
        newly_delayed=delayed.count,
        selection=solution.selection,
        delay_min=delay.minimum,
        delay_max=delay.maximum,
        delay_table=delay.ticks,
        drawn_delay=delayed.approximate(),
        observed_delay=observed.approximate(),
        sha256=join([w.tally.digest for w in written]),
        files=tuple(name for w in written for name in w.files),
    ).model_copy(
        update=texts
        | ({"outages": delay.record} if delay.record else {})
        | ({"duplicates": duplicates} if experiment.duplicates else {})
    )


def _chunk_count(groups: list[RowGroup], longest: int, chunk_rows: int, workers: Workers) -> int:
    """Number of chunks of about chunk_rows rows; at least one per core, unless the rows read ahead are most of all."""
    rows = total_rows(groups)
    span = max(1, groups[-1].base_max - groups[0].time_min) if groups else 1
    rows_in_delay = int(rows * min(1.0, longest / span))
    wanted = min(MAX_CHUNK_ROWS, max(chunk_rows, rows_in_delay))
    cores = workers.cores if rows > chunk_rows else 1
    return max(1, -(-rows // wanted), cores if rows_in_delay * cores < rows else 1)


def _header(source: Source) -> bytes:
    """Returns the two new names and the source's own header; empty when it has none. Raises UserError.

    A new name that the source has already is preceded by streamgauge_.
    """
    own = HEADER if source.nexmark else header(source)
    if not own:
        return b""
    taken = names_in(own, source, source.files[0] if source.files else "nexmark")
    new = [f"streamgauge_{name}" if name in taken else name for name in ("ingestion_time", "event_time")]
    return source.separator.encode().join([*(name.encode() for name in new), own])
