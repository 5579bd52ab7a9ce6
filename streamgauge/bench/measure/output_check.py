"""Compares the output of a trial with the oracle's answer to what was offered."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from streamgauge.base.schemas import NEXMARK_IDS
from streamgauge.bench.driver.fleet import Drivers
from streamgauge.bench.driver.marking import Marking
from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.driver.replay import load_stream, offered_rows
from streamgauge.bench.workloads import Spec, find
from streamgauge.catalog.artifacts import Artifact
from streamgauge.config import Replay, Workload
from streamgauge.records.driver import DriverFigures
from streamgauge.records.trial import Compared, StreamSize

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger("streamgauge")


def compared(run: TrialRun, stream: Artifact, fleet: Drivers, replay: Replay, workload: Workload) -> Compared | None:
    """Compares the output with the oracle's answer; None if that is not known.

    That is so for a system without an account or checksums, and where the answer depends on an order of events that
    nobody knows.
    """
    figures, epochs = run.details["system"], run.details["epochs"]
    if "check" in figures:  # the adapter has compared it by itself
        return figures["check"]
    accounted = figures.get("batches") or figures.get("stretches")
    if not accounted or any(epoch.get("checksum") is None for epoch in epochs):
        run.details["unchecked"] = "the system keeps no account of what it took and emitted"
        return None
    from streamgauge.bench.oracle.check import check
    from streamgauge.bench.oracle.late_rows import Unknowable

    rows = _offered(run.details["drivers"], stream, fleet, replay, workload)
    began = time.monotonic()
    try:
        answer = check(rows, figures, epochs, Spec.of(workload, fleet.columns), run.details["rules"])
    except Unknowable as problem:
        log.info("the output was not compared: %s", problem)
        run.details["unchecked"] = str(problem)
        return None
    except ValueError as problem:
        return {"wrong": f"output not checked: {problem}"}
    log.info("checked %d events against the oracle in %.1f s", rows.num_rows, time.monotonic() - began)
    return cast("Compared", answer.to_dict())


def size(stream: Artifact, copies: int) -> StreamSize:
    """Rows of a whole stream with its copies, and those out of order, if its manifest tells."""
    late: int | None = stream.manifest.get("achieved_out_of_order")
    rows = stream.manifest["events"] + stream.manifest.get("duplicates", 0)
    return {"events": copies * rows, "out_of_order": None if late is None else copies * late}


def salted(workload: Workload) -> tuple[str, ...]:
    """Columns that `densify` salts: the workload's key, and the Nexmark ids that its query names."""
    query = find(workload.query)
    ids = [name for name in query.columns if name in NEXMARK_IDS] if query.reads else []
    return tuple(dict.fromkeys([*ids, *([workload.key] if workload.key else [])]))


def _offered(
    drivers: Sequence[DriverFigures], stream: Artifact, fleet: Drivers, replay: Replay, workload: Workload
) -> pa.Table:
    """Returns the events that were offered; the counts per partition include one sentinel each."""
    loaded = load_stream(
        stream.files(), fleet.tick, fleet.columns,
        line=fleet.line, max_memory_mb=max(1, replay.max_memory_mb // replay.shares),
        densify=replay.densify, salted=salted(workload), partition_by=fleet.partition_by,
    )  # fmt: skip
    marking = Marking(tuple(drivers[0]["ids"]), drivers[0]["round"])
    return offered_rows(loaded, [[count - 1 for count in driver["offered"]] for driver in drivers], marking)
