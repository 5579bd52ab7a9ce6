"""Manifests of events and streams as their stages write them, for artifacts that a test makes by hand."""

from __future__ import annotations

from typing import Any

from streamgauge.records.manifests import EventsManifest, StreamManifest

_NO_DELAYS: dict[str, Any] = {**dict.fromkeys(("min", "p50", "p90", "p99", "max", "mean")), "histogram": ()}


def of_events(**given: Any) -> dict[str, Any]:
    """The manifest of events; what is not given is as of a source without a line."""
    fixed: dict[str, Any] = {
        "doubts": (), "files": (), "quarantine_file": "quarantine.parquet", "events": 0, "quarantined": 0, "lines": 0,
        "source_lines": 0, "tick": "ns", "ticks_per_second": 10**9, "columns": {}, "arrival": False, "order": "file",
        "in_file": {"events": 0, "out_of_order": 0}, "split_bytes": 1 << 20, "sources": (),
    }  # fmt: skip
    return EventsManifest.model_validate(fixed | given).to_json()


def of_stream(**given: Any) -> dict[str, Any]:
    """The manifest of a stream; what is not given is as of a stream without an event."""
    counts = ("events", "quarantined", "newly_delayed", "feasible_max", "delay_min", "delay_max", "seed")
    kinds = ("source", "target", "aimed", "achieved")
    fixed: dict[str, Any] = {
        "events_key": "k", "tick": "ns", "columns": {}, "arrival": False, "target_percent": None, "infeasible": False,
        "selection": {"bin": -1, "last_seq": -1}, "delay_table": (0, 0), "drawn_delay": _NO_DELAYS,
        "observed_delay": _NO_DELAYS, "sha256": "0" * 64, "files": (), "csv_files": (),
        **dict.fromkeys(counts, 0), **{f"{kind}_out_of_order": 0 for kind in kinds},
    }  # fmt: skip
    return StreamManifest.model_validate(fixed | given).to_json()
