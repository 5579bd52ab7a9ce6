"""Refuses a stream that a workload or a system cannot take, before an engine dies of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import int64s
from streamgauge.base.errors import UserError
from streamgauge.base.parquet import parquet_file
from streamgauge.base.units import PS, moment
from streamgauge.bench.driver.replay import EVENT_TS
from streamgauge.bench.driver.schedule import Loop
from streamgauge.bench.oracle.sums import LARGEST, MILLIONTHS, extremes, sums, whole
from streamgauge.bench.workloads import Spec, find
from streamgauge.catalog.artifacts import Artifact
from streamgauge.config import System, Workload
from streamgauge.records.manifests import StreamManifest

_PIECE_ROWS = 1 << 20
#: most loops of the stream whose sums are formed beforehand; of more than these the oracle tells after a trial
_MOST_LOOPS = 8


def refuse_overflow(streams: Sequence[Artifact], workload: Workload) -> None:
    """Raises UserError, naming column and limit, if a sum of the query over one of these streams passes 64 bits."""
    for stream in streams:
        columns = stream.read(StreamManifest).columns
        spec = Spec.of(workload, columns)
        query = find(spec.query)
        if query.multiple:
            _refuse_prices(stream, workload, query.multiple)
        if not sums(spec) or _MOST_LOOPS * whole(_pieces(stream, [str(spec.value)]), spec) <= LARGEST:
            continue
        reached = extremes(_loops(stream, spec), spec)
        if reached > LARGEST:
            scale, why, span = 1, "64 bits", "session" if query.late == "session" else "window"
            if columns[str(spec.value)] == "float64":
                scale, why = MILLIONTHS, "64 bits, as floats are summed in millionths"
            raise UserError(
                f"workloads.{workload.name}.value: found sums of {spec.value} up to {reached / scale:.6g} in one "
                f"{span}, allowed: up to {LARGEST / scale:.6g} ({why}); choose a shorter window, or a larger unit for "
                "the column"
            )


def refuse_before_1970(streams: Sequence[Artifact], system: System) -> None:
    """Raises UserError if one of these streams has an event before 1970 or at its first instant, and it takes none.

    A producer takes 0 for no time at all.
    """
    for stream in streams if system.since_1970 else ():
        ends = [pc.min_max(rows["event_time"]).as_py()["min"] for rows in _pieces(stream, ["event_time"])]
        least, tick = min((end for end in ends if end is not None), default=LARGEST), stream.read(StreamManifest).tick
        if least < PS["ms"] // PS[tick]:
            raise UserError(
                f"systems.{system.name}.timestamp: found event, but an event is of {moment(least, tick)}, and Kafka's "
                "producers give a record a time of 1 ms after 1970 or later; allowed: append"
            )


def _refuse_prices(stream: Artifact, workload: Workload, multiple: int) -> None:
    """Raises UserError if a price is too high for the multiple of it that one of Nexmark's queries forms."""
    ends = [pc.min_max(rows["price"]).as_py() for rows in _pieces(stream, ["price"])]
    highest = max((abs(end) for one in ends for end in one.values() if end is not None), default=0)
    if highest * multiple > LARGEST:
        raise UserError(
            f"workloads.{workload.name}: found a price of {highest:.6g}, allowed: up to {LARGEST // multiple:.6g}, as "
            f"{workload.query} forms {multiple} times a price in 64 bits; choose a larger unit for the column"
        )


def _loops(stream: Artifact, spec: Spec) -> pa.Table:
    """The rows that a window or session may hold: those of the stream, and of the loops that follow it."""
    names = ("seq", "event_time", "ingestion_time", spec.key, spec.value)
    rows = pa.concat_tables(_pieces(stream, [*dict.fromkeys(name for name in names if name is not None)]))
    per_us, times = PS["us"] // PS[stream.read(StreamManifest).tick], rows["event_time"].to_numpy()
    shift = Loop.of(rows["ingestion_time"].to_numpy()).shift
    count = min(_MOST_LOOPS, -(-spec.length_us * per_us // shift) + 1)
    moved = [int64s((times + loop * shift) // per_us).view(EVENT_TS) for loop in range(count)]
    return pa.concat_tables(rows.append_column("event_ts", at) for at in moved)


def _pieces(stream: Artifact, columns: list[str]) -> Iterator[pa.Table]:
    for file in stream.files():
        for batch in parquet_file(file).iter_batches(batch_size=_PIECE_ROWS, columns=columns):
            yield pa.table(batch)
