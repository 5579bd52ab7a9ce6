"""Files of strangers, unlike each other: init, then check, without an option and without a look at the docs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.command import Call, run

BEGIN = datetime(2026, 3, 1, 8, tzinfo=UTC)


def devices(folder: Path) -> Path:
    """Nested JSON lines, in which one device's clock is ahead by a month."""
    draw, lines = random.Random(5), []
    for n in range(1500):
        at = BEGIN + timedelta(seconds=2 * n - (draw.randrange(40) if draw.random() < 0.04 else 0))
        at += timedelta(days=30) if n == 1200 else timedelta(0)
        payload = {"ts": int(at.timestamp() * 1000), "temp": round(20 + draw.random(), 2), "tags": ["a"]}
        received = f"{BEGIN + timedelta(seconds=2 * n + 1):%Y-%m-%dT%H:%M:%SZ}"
        lines.append(json.dumps({"device": {"id": f"d{n % 12}"}, "received": received, "payload": payload}))
    (folder / "devices.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "devices.jsonl"


def access(folder: Path) -> Path:
    """An access log of Apache, written by several processes."""
    draw, lines = random.Random(5), []
    for n in range(1500):
        at = BEGIN + timedelta(milliseconds=300 * n - (draw.randrange(6000) if draw.random() < 0.3 else 0))
        request = f'"GET /p/{n % 30}?q=a%20b HTTP/1.1" {draw.choice([200, 304, 404])} {draw.randrange(90000)}'
        lines.append(f'10.0.{n % 7}.1 - - [{at:%d/%b/%Y:%H:%M:%S} +0100] {request} "-" "Mozilla/5.0 (X11; Linux)"')
    (folder / "access.log").write_text("\n".join(lines) + "\n")
    return folder / "access.log"


def european(folder: Path) -> Path:
    """A CSV of Europe: semicolons, decimal commas, a comma before the milliseconds, a BOM, CRLF."""
    draw, lines = random.Random(5), ["Zähler;Zeitpunkt;Leistung kW;PLZ"]
    for n in range(1500):
        at = datetime(2025, 12, 31, 23, 59, 58, 123_000, UTC) + timedelta(milliseconds=1450 * n)
        at -= timedelta(milliseconds=draw.randrange(9000) if draw.random() < 0.02 else 0)
        power = f"{draw.randrange(90000) / 100:.2f}".replace(".", ",")
        lines.append(
            f"Z{n % 5};{at:%d.%m.%Y %H:%M:%S},{at.microsecond // 1000:03d};{power};0{draw.randrange(1000, 9999)}"
        )
    (folder / "messwerte.csv").write_bytes(("\ufeff" + "\r\n".join(lines) + "\r\n").encode())
    return folder / "messwerte.csv"


@pytest.mark.parametrize(
    ("make", "time", "columns", "first", "experiments", "says"),
    [
        (devices, {"column": "payload.ts", "unit": "ms"}, {}, "2026-03-01T08:00:00Z", ["as_it_came", "late50"],
         ["hint      1 event (line 1,201) is ahead"]),
        (access, {"columns": [3, 4], "format": "[%d/%b/%Y:%H:%M:%S %z]"}, {}, "2026-03-01T0",
         ["as_it_came", "late50"], []),
        (european, {"column": "Zeitpunkt", "format": "%d.%m.%Y %H:%M:%S,%f"}, {"PLZ": "string"},
         "2025-12-31T23:59:58.123Z", ["as_it_came", "late20"], []),
    ],
)  # fmt: skip
def test_a_stranger_s_file_is_understood_and_its_benchmark_is_accepted(
    tmp_path: Path, make: Callable[[Path], Path], time: dict[str, Any], columns: dict[str, str], first: str,
    experiments: list[str], says: list[str],
) -> None:  # fmt: skip
    out = tmp_path / "mine.yaml"
    told = run(Call(["init", str(make(tmp_path)), "--out", str(out)]))
    assert told.code == 0, told.err
    assert f"          {first}" in told.out
    assert all(text in told.out for text in says)
    benchmark = yaml.safe_load(out.read_text())
    assert benchmark["source"]["time"] == time
    assert columns.items() <= benchmark["source"].get("columns", {}).items()
    assert [one["name"] for one in benchmark["experiments"]] == experiments
    assert f"written   {out}: now `streamgauge check {out}`, then `streamgauge run {out}`" in told.out
    plan = run(Call(["check", str(out), "--artifacts", str(tmp_path / "a"), "--json"])).json
    assert plan["cells"] == [f"{name}.all.spark" for name in experiments]
    assert (plan["sample"]["lines"], plan["sample"]["events"]) == (1000, 1000)
