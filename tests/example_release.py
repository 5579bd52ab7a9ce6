"""Hand-written records of a release check: one series passes, one is open, an answer is worse."""

from __future__ import annotations

from pathlib import Path

from streamgauge.base.canonical import with_sha256
from streamgauge.base.environment import Environment
from streamgauge.base.jsonl import write_json
from streamgauge.records.release import JudgedSeries, Reason, ReleaseCheck, ReleaseManifest, Repetition, Side

ABOUT = {
    "run": "versions-release-1", "benchmark": "versions", "baseline": "spark-4.2", "candidate": "spark <4.3>",
    "verdict": "no-go", "line": "no-go: q5 answers differently",
}  # fmt: skip
HOST = Environment({"cpu": "Example 1", "cores": 2}, {"python": "3.11.7"})
SYSTEMS = {
    name: {"engine": "spark", "version": version}
    for name, version in (("spark-4.2", "4.2.1"), ("spark <4.3>", "4.3.0"))
}
CHECK = ReleaseCheck.of(
    {
        **ABOUT,
        "reasons": (
            Reason("answer", "failed", "q5 batch", "hash a | b differs"),
            Reason("capability", "open", "q7", "not asked"),
            Reason("output", "note", "steal", "2 %"),
        ),
        "series": (
            JudgedSeries(
                cell="late5.bids", metric="cpu", state="passed", reason="rules out a slowdown of 10 %", tolerance=0.1,
                ratio=1.01, interval=(0.98, 1.04), noise_floor=0.02, detectable_effect=0.03, n_baseline=4,
                n_candidate=4,
            ),
            JudgedSeries(cell="late5.bids", metric="p99", state="open", reason="no value", tolerance=0.1),
        ),
        "versions": SYSTEMS,
        "environment": HOST,
    },
    "release.json",
)  # fmt: skip
MANIFEST = ReleaseManifest.of(
    {
        **ABOUT,
        "configuration": {}, "configuration_sha256": "c0ffee" * 10, "sources": (), "systems": SYSTEMS,
        "machine": HOST.machine, "software": HOST.software, "commit": "a0caa8c", "records": {},
        "commands": ("streamgauge release-check versions.yaml --baseline spark-4.2 --candidate 'spark <4.3>'",),
    },
    "manifest.json",
)  # fmt: skip
SIDES: tuple[Side, ...] = ("baseline", "candidate", "control")


def record_release(directory: Path, cell: str = "late5.bids") -> Path:
    """Writes the records as a release check leaves them; returns the directory."""
    directory.mkdir(parents=True)
    series = tuple(one.model_copy(update={"cell": cell}) for one in CHECK.series)
    CHECK.model_copy(update={"series": series}).write(directory / "release.json")
    write_json(directory / "manifest.json", with_sha256(MANIFEST.model_dump(mode="json", exclude={"sha256"})))
    for number in range(4):
        for side in SIDES:
            values = {"cpu": 1.0 + number / 50, "p99": 80.0 + number}
            Repetition(cell=cell, side=side, round=number + 1, values=values).append(directory / "release.jsonl")
    return directory
