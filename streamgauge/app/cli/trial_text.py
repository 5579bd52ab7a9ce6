"""The text about a trial, from its record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamgauge.bench.measure.measured import speed_of
from streamgauge.records.loss import Loss

OUTPUT = {True: "equals the oracle's answer", False: "wrong", None: "not checked"}


def trial_lines(record: dict[str, Any]) -> Iterator[str]:
    observation, details = record["observation"], record["details"]
    yield f"verdict     {record['outcome']}: {record['reason']}"
    yield f"offered     {observation['offered']:,}   taken {observation['taken']:,}   emitted {details['emitted']:,}"
    yield f"output      {OUTPUT[record['correct']]}{_why_unchecked(record)}"
    if loss := record.get("lost_at_own_speed"):
        late = (record["check"] or {}).get("late_events")
        yield f"lost        {Loss(**loss).beside(late, speed_of(details))}"
    answers = details["system"].get("answers")
    if answers and answers["delivery"]:
        count, copies = answers["answers"], answers["duplicates"]
        earlier = " with those before the trial" if count > details["emitted"] + copies else ""
        yield f"answers     {count:,}{earlier}, {copies:,} duplicates: {answers['delivery']}"
    yield from _stream(record)
    for name in ("event", "processing"):
        latency = details[f"{name}_latency_ns"]
        if latency["count"]:
            parts = "  ".join(f"{q} {latency[q] / 1e6:,.1f} ms" for q in ("p50", "p90", "p99", "p99.9", "max"))
            yield f"{name + '-time':<15} latency  {parts}"
    if log := details["system"].get("log"):
        yield f"job's log   {log}"


def _why_unchecked(record: dict[str, Any]) -> str:
    """The reason for an output that is not checked, where it is known."""
    details = record["details"]
    why = (details["system"].get("answers") or {}).get("unchecked") or details.get("unchecked")
    return f": {why}" if record["correct"] is None and why else ""


def _stream(record: dict[str, Any]) -> Iterator[str]:
    """Yields a line about a stream that was too short, or offered in part, with that part's own disorder."""
    details, offered = record["details"], record["observation"]["offered"]
    drivers, whole = details["drivers"], details.get("stream")
    loops = max((driver["loops"] for driver in drivers), default=0)
    if loops > 1:
        yield f"stream      too short for this trial: {loops} loops of it, each with later times"
    elif whole and 0 < offered < whole["events"]:
        late = sum(driver["out_of_order"] for driver in drivers)
        of_whole = whole["out_of_order"]
        rest = "" if of_whole is None else f"; of the whole stream {100 * of_whole / whole['events']:.4g} %"
        yield (
            f"stream      its first {offered:,} of {whole['events']:,} events, "
            f"{100 * late / offered:.4g} % of them out of order{rest}"
        )
