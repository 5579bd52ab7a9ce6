"""Turns Spark's progress reports into records of micro-batches; needs no Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamgauge.records.trial import EngineBatch


def batches_of(reports: Sequence[Mapping[str, Any]], frames: int = 1) -> list[dict[str, Any]]:
    """Returns one record per micro-batch that ran, ordered by batch number, without idle reports."""
    kept = {int(report["batchId"]): report for report in reports if ran(report)}
    return [batch_of(kept[number], frames) for number in sorted(kept)]


def ran(report: Mapping[str, Any]) -> bool:
    """True if a batch ran; False if Spark only says that it is idle."""
    return "addBatch" in report.get("durationMs", {})


def batch_of(report: Mapping[str, Any], frames: int = 1) -> dict[str, Any]:
    """Returns a micro-batch's record.

    at: wall-clock seconds of its trigger; rows: taken from the stream, whatever the number of its readers. A query
    without state has no figure of it.
    """
    parts = dict(report["durationMs"])
    states = report.get("stateOperators", [])
    sources = report["sources"][:frames]
    batch = {
        "at": _wall_s(report["timestamp"]),
        "batch_id": int(report["batchId"]),
        "rows": sum(_offsets(sources[0]["endOffset"]).values()) - sum(_offsets(sources[0]["startOffset"]).values()),
        "input_rows": int(report["numInputRows"]),
        "duration_ms": int(parts.pop("triggerExecution")),
        "parts_ms": {name: int(value) for name, value in parts.items()},
        "watermark_ms": _watermark_ms(report),
        "dropped": sum(int(state["numRowsDroppedByWatermark"]) for state in states),
        "ends": ends_of(report, frames),
    }
    if states:
        batch["state_rows"] = sum(int(state["numRowsTotal"]) for state in states)
        batch["state_bytes"] = sum(int(state["memoryUsedBytes"]) for state in states)
    return batch


def ends_of(report: Mapping[str, Any], frames: int = 1) -> list[dict[str, int]]:
    """Lists queue -> first row of the next batch, for each of the query's readers of the stream."""
    return [_offsets(source["endOffset"]) for source in report["sources"][:frames]]


def planned_in(checkpoint: Path, frames: int = 1) -> list[EngineBatch]:
    """Lists the micro-batches whose plans a checkpoint on this host keeps, which are the last hundred at least.

    What a batch dropped is in no plan.
    """
    batches: list[EngineBatch] = []
    for file in sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda one: int(one.name)):
        _, about, *ends = file.read_text().splitlines()
        watermark_ms: int = json.loads(about)["batchWatermarkMs"]
        taken = [_offsets(end) for end in ends[:frames]]
        batches.append({"batch_id": int(file.name), "watermark_ms": watermark_ms, "ends": taken})
    return batches


def joined(*accounts: Sequence[EngineBatch]) -> list[EngineBatch]:
    """Joins accounts of one query that was started again, by batch; a later account replaces what an earlier one says.

    A batch that is known from its plan alone has no watermark if the others have none.
    """
    kept = {batch["batch_id"]: batch for account in accounts for batch in account}
    if any(batch["watermark_ms"] is None for batch in kept.values()):
        kept = {number: {**batch, "watermark_ms": None} for number, batch in kept.items()}
    return [kept[number] for number in sorted(kept)]


def _offsets(value: Any) -> dict[str, int]:
    return {} if value is None else json.loads(value) if isinstance(value, str) else dict(value)


def _watermark_ms(report: Mapping[str, Any]) -> int | None:
    text = report.get("eventTime", {}).get("watermark")
    return None if text is None else round(_wall_s(text) * 1000)


def _wall_s(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
