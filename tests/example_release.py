"""Hand-written records of a release check: one series passes, one is open, an answer is worse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamgauge.base.canonical import signed
from streamgauge.base.jsonl import append_json, write_json

FOUND: dict[str, Any] = {
    "baseline": "spark-4.2", "candidate": "spark <4.3>", "verdict": "no-go", "line": "no-go: q5 answers differently",
    "run": "versions-release-1",
    "reasons": [
        {"state": "failed", "kind": "answer", "what": "q5 batch", "why": "hash a | b differs"},
        {"state": "open", "kind": "capability", "what": "q7", "why": "not asked"},
        {"state": "note", "kind": "machine", "what": "steal", "why": "2 %"},
    ],
    "series": [
        {"cell": "late5.bids", "metric": "cpu", "state": "passed", "ratio": 1.01, "interval": [0.98, 1.04],
         "tolerance": 0.1, "noise_floor": 0.02, "detectable_effect": 0.03, "n_baseline": 4, "n_candidate": 4,
         "reason": "rules out a slowdown of 10 %"},
        {"cell": "late5.bids", "metric": "p99", "state": "open", "interval": None, "tolerance": 0.1,
         "reason": "no value"},
    ],
}  # fmt: skip
MANIFEST: dict[str, Any] = {
    "systems": {name: {"engine": "spark", "version": version} for name, version in (("spark-4.2", "4.2.1"),
                                                                                    ("spark <4.3>", "4.3.0"))},
    "configuration_sha256": "c0ffee" * 10, "commit": "a0caa8c",
    "machine": {"cpu": "Example 1", "cores": 2}, "software": {"python": "3.11.7"},
    "commands": ["streamgauge release-check versions.yaml --baseline spark-4.2 --candidate 'spark <4.3>'"],
}  # fmt: skip


def record_release(directory: Path, cell: str = "late5.bids") -> Path:
    """Writes the records as a release check leaves them; returns the directory."""
    directory.mkdir(parents=True)
    write_json(directory / "release.json", {**FOUND, "series": [{**one, "cell": cell} for one in FOUND["series"]]})
    write_json(directory / "manifest.json", signed(MANIFEST))
    for number in range(4):
        for side in ("baseline", "candidate", "control"):
            values = {"cpu": 1.0 + number / 50, "p99": 80.0 + number}
            append_json(directory / "release.jsonl", {
                "round": number + 1, "side": side, "cell": cell, "values": values, "void": None, "wrong": None,
                "ladder": False,
            })  # fmt: skip
    return directory
