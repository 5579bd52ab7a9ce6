"""Refuses a workload whose sums leave 64 bits, before an engine dies of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.base.errors import UserError
from streamgauge.base.places import opened
from streamgauge.base.units import PS
from streamgauge.catalog.artifacts import Artifact
from streamgauge.config import Workload
from streamgauge.driver.replay import EVENT_TS
from streamgauge.oracle.sums import LARGEST, MILLIONTHS, extremes, sums, whole
from streamgauge.workloads import Spec

_PIECE_ROWS = 1 << 20


def refuse_overflow(streams: Sequence[Artifact], workload: Workload) -> None:
    """Raises UserError, naming column and limit, if a sum of the query over one of these streams passes 64 bits."""
    for stream in streams:
        spec = Spec.of(workload, stream.manifest["columns"])
        if not sums(spec) or whole(_pieces(stream, spec, timed=False), spec) <= LARGEST:
            continue
        reached = extremes(pa.concat_tables(list(_pieces(stream, spec, timed=True))), spec)
        if reached > LARGEST:
            scale, why = 1, "64 bits"
            if stream.manifest["columns"][str(spec.value)] == "float64":
                scale, why = MILLIONTHS, "64 bits, as floats are summed in millionths"
            raise UserError(
                f"workloads.{workload.name}.value: found sums of {spec.value} up to {reached / scale:.6g} in one "
                f"{'session' if spec.query == 'sessions' else 'window'}, allowed: up to {LARGEST / scale:.6g} ({why}); "
                "choose a shorter window, or a larger unit for the column"
            )


def _pieces(stream: Artifact, spec: Spec, *, timed: bool) -> Iterator[pa.Table]:
    """Yields the stream's rows with the columns that are summed; timed: and with those that say where."""
    places = ("seq", "event_time", spec.key) if timed else ()
    wanted = [*dict.fromkeys(name for name in (*places, spec.value) if name is not None)]
    for file in stream.files():
        with pq.ParquetFile(opened(file)) as parquet:
            for batch in parquet.iter_batches(batch_size=_PIECE_ROWS, columns=wanted):
                rows = pa.table(batch)
                if timed:
                    us = rows["event_time"].to_numpy() // (PS["us"] // PS[stream.manifest["tick"]])
                    rows = rows.append_column("event_ts", pa.array(us).view(EVENT_TS))
                yield rows
