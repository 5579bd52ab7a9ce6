"""The example of docs/engines.md: Bytewax answers as DuckDB does under Bytewax's rule of lateness, not under others."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.driver.replay import load_stream, offered_rows
from streamgauge.bench.driver.system import make_system
from streamgauge.bench.driver.trial import run_trial
from streamgauge.bench.driver.trial_request import Bounds, TrialRequest
from streamgauge.bench.engines.flink import queries as flink
from streamgauge.bench.oracle.check import check
from streamgauge.bench.workloads import Spec
from streamgauge.config import Replay, System, Workload
from streamgauge.config.systems import OwnSettings
from tests.driver.conftest import COLUMNS, stream_table

pytest.importorskip("bytewax", reason="there is no wheel of Bytewax for this Python")
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ABOUT = {"name": "w", "query": "windowed_aggregation", "key": "carrier", "value": "flight"}
WORKLOAD = Workload.model_validate(ABOUT | {"window": "3s", "watermark": "1s"})


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield OwnSettings(name="bytewax", engine="bytewax_engine:Bytewax")
    sys.modules.pop("bytewax_engine", None)


def test_windows_and_late_events_are_the_oracle_s_under_its_own_rule(system: System, tmp_path: Path) -> None:
    draw = random.Random(3)
    ingestion = [n * 1_000_000 for n in range(20_000)]
    times = [max(0, t - draw.randrange(5 * 10**9)) if draw.random() < 0.2 else t for t in ingestion]
    pq.write_table(stream_table(times, ingestion), tmp_path / "part-0.parquet")
    manifest = {"files": ["part-0.parquet"], "tick": "ns", "columns": COLUMNS}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    spec = Spec.of(WORKLOAD, COLUMNS)
    made = make_system(system, tmp_path / "system")
    made.start()
    try:
        with Fleet(tmp_path, Replay(), tick="ns", columns=COLUMNS) as fleet:
            bounds = Bounds(max_slip_s=10, drain_s=60)
            run = run_trial(made, fleet, TrialRequest(WORKLOAD, tmp_path / "trial", 5000, 4.0, bounds))
    finally:
        made.stop()
    assert run.observation.invalid is None
    assert run.details["drained"]
    stream = load_stream([tmp_path / "part-0.parquet"], "ns", COLUMNS, line=False, max_memory_mb=64, densify=1)
    rows = offered_rows(stream, [[count - 1 for count in driver["offered"]] for driver in run.details["drivers"]])
    told, epochs, rules = run.details["system"], run.details["epochs"], run.details["rules"]

    found = check(rows, told, epochs, spec, rules)
    assert (found.wrong, found.expected_late, found.watermarks_checked) == (None, found.reported_late, True)
    assert found.reported_late == 2995  # the figure of docs/engines.md
    assert found.reported_rows > 10
    assert check(rows, told, epochs, spec, flink.rules(spec)).wrong
    later = replace(rules, delay_us=rules.delay_us + 10_000)
    assert check(rows, told, epochs, spec, later).wrong
