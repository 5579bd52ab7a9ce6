"""The measurement of the example package: its benchmark, and ways to break and to rename it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.measure.benches import Bench, write_bench

NAME = "example_pauses"
CODE = "streamgauge_example.pauses:PAUSES"


def bench_of(place: Path, section: dict[str, Any] | None = None, **more: Any) -> Bench:
    """A system that hands over every 50 ms, and works on each batch for 20 ms."""
    asked: dict[str, Any] = {} if section is None else {NAME: section}
    return write_bench(place, capacity=40_000, batch_cost="20ms", **asked, **more)


def broken(plugin: Path) -> None:
    for file in plugin.rglob("*.py"):
        file.write_text("raise SystemExit('imported')")


def renamed(plugin: Path, name: str) -> None:
    (points,) = plugin.glob("*.dist-info/entry_points.txt")
    points.write_text(points.read_text().replace(f"{NAME} =", f"{name} ="))
