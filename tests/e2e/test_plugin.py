"""The query of a package outside of the project is measured on Spark and on Flink, and its answers are DuckDB's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.measure.benches import write_bench
from tests.plugins import installed

SYSTEMS: dict[str, dict[str, Any]] = {
    "spark": {"engine": "spark", "memory": "1g", "master": "local[1]"},
    "flink": {"engine": "flink", "memory": "1536m"},
}
#: every tenth event comes five seconds late
TIMES = [i - 5000 if i % 10 == 0 and i > 6000 else i for i in range(20_000)]


@pytest.mark.e2e
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("flink_is_made")
@pytest.mark.parametrize(
    ("engine", "further"), [pytest.param("spark", False, marks=pytest.mark.prove), ("flink", True)]
)
def test_a_package_s_query_is_measured(engine: str, further: bool, tmp_path: Path) -> None:
    """further: it also reads a column by its own name."""
    site = installed(tmp_path / "site")
    if further:
        for file in (site / "streamgauge_example" / "extremes").iterdir():
            text = file.read_text().replace('late="window"', 'late="window",\n    columns=("flight",)')
            file.write_text(text.replace("max(number)", "max(flight)"))
    bench = write_bench(
        tmp_path,
        ms=TIMES,
        workloads=[
            {"name": "w", "query": "example.extremes", "key": "carrier", "value": "flight", "window": "1s"},
        ],
        systems=[{"name": "s", **SYSTEMS[engine]}],
    )
    cell = ("--experiment", "e", "--workload", "w", "--system", "s", "--artifacts", str(bench.store.root))
    done = subprocess.run(
        [sys.executable, "-c", "from streamgauge.app.cli import main; main()", "trial", str(bench.file), *cell,
         "--rate", "3000", "--seconds", "5", "--json"],
        env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    record = json.loads(done.stdout)
    assert record["correct"] is True, record
    assert record["check"]["expected_rows"] == record["check"]["reported_rows"] > 10, record["check"]
    assert record["check"]["late_events"] > 100, record["check"]
