"""Compares the latencies of cells that differ only in their stream: in turns, in one process, all at one rate.

It follows the shared search in its warm process. Each turn is a part of one open-loop run of one query; the ratios of
p50 and p99 to those of the first cell stand beside those of the rates, in the search.json of each other cell.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from streamgauge.base.histogram import Histogram
from streamgauge.bench.measure.cell import ReadyCell
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measurements.search.stage import publish
from streamgauge.bench.search import latency_turns
from streamgauge.bench.search.claims import claim_of
from streamgauge.bench.search.latency_turns import QUANTILES
from streamgauge.catalog.run_summary import search_of
from streamgauge.records.comparison import Comparison
from streamgauge.records.trial import LATENCY_TURNS, TurnLatencies

log = logging.getLogger("streamgauge")


def measure(bench: ReadyCell, group: Sequence[CellRun], token: int) -> dict[str, dict[str, float]]:
    """Measures the cells of a ready group; returns what the stage's record tells of it: rate, seconds and answers.

    group: in the order of the ready cells.
    A process that does not last from one run to the next is cold in each, so its latencies are not compared.
    """
    for one in group:  # a stage that was killed has begun again
        (one.directory / LATENCY_TURNS).unlink(missing_ok=True)
    cells, begin = bench.cells, time.monotonic()
    benchmark, searches = group[0].benchmark, [search_of(one.directory) for one in group]
    rates = [claim_of(search).rate_events_per_s for search in searches]
    sound = [rate for rate in rates if rate is not None]
    measured: tuple[Histogram, ...] = ()
    rate, turns = 0.0, latency_turns.order(benchmark.search.processes, benchmark.latency.blocks, len(cells))
    why = "too few blocks have answers enough"
    if not bench.capabilities.lasts:
        why = "its process does not last from one run to the next"
    elif len(sound) < len(cells):
        why = f"{cells[rates.index(None)].experiment} has no rate that counts"
    else:
        rate = latency_turns.common_rate(sound, benchmark.latency.fractions, benchmark.latency.rates)
        log.info("latencies in %d turns at %.6g events/s", len(turns), rate)
        run = bench.paced(rate, turns, benchmark.latency.turn_seconds, token=token)
        if invalid := run.observation.invalid:
            why = f"the run in turns is invalid: {invalid}"
        measured = () if invalid else run.spans
        for number, one in enumerate(group):
            own = [span for turn, span in zip(turns, run.spans, strict=False) if turn == number]
            line = TurnLatencies(rate_events_per_s=rate, invalid=invalid, event_latency=own)
            line.append(one.directory / LATENCY_TURNS)
    for number, cell in enumerate(cells[1:], 1):
        comparisons = [one for one in searches[number].compared if one.metric not in QUANTILES]
        for metric, quantile in QUANTILES.items():
            ratio = latency_turns.ratio(turns, measured, number, quantile)
            comparisons.append(Comparison.of(cell, cells[0], ratio, metric, why))
            log.info("%s: %s", cell.name, comparisons[-1].sentence)
        publish(group[number], searches[number].model_copy(update={"compared": tuple(comparisons)}))
    seconds, answers = time.monotonic() - begin, sum(one.count for one in measured)
    return {"in_turns": {"rate_events_per_s": rate, "seconds": seconds, "answers": answers}}
