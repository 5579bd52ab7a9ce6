"""advise --measure on a real engine: from a file to rate, latency and state beside what each delay loses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_advise_measure import WINDOWS
from tests.command import Call, run

RATE = 2_000


@pytest.mark.e2e
@pytest.mark.prove
@pytest.mark.timeout(600)
def test_spark_is_measured_at_two_delays_and_the_page_shows_both(tmp_path: Path) -> None:
    page, artifacts = tmp_path / "advice.html", tmp_path / "artifacts"
    options = ["--delay", "0s", "--delay", "8h", "--measure", "--system", "spark", "--processes", "1", "--run", "two"]
    more = ["--rate", str(RATE), "--artifacts", str(artifacts), "--page", str(page), "--json"]
    made = run(Call(["advise", *WINDOWS, *options, *more])).json
    short, long = made["measured"]
    losses = {one["delay_ns"]: (one["lost"], one["windows_wrong"]) for one in made["curve"]}
    for one, delay_s in ((short, 0), (long, 8 * 3600)):
        assert one["delay_ns"] == delay_s * 10**9
        assert (one["lost"], one["windows_wrong"]) == losses[one["delay_ns"]]
        assert one["interval"][0] <= one["rate"] <= one["interval"][1]
        assert 0 < one["p50_ns"] <= one["p99_ns"]
        assert one["state_bytes"] > 0
        assert one["output"] == "right"
        search = json.loads((artifacts / "runs" / "two" / "cells" / one["cell"] / "search.json").read_text())
        assert search["sustainable_rate_events_per_s"] == one["rate"]
    assert made["measurement"]["latency_at_events_per_s"] == RATE
    assert (artifacts / "runs" / "two" / "index.html").exists()
    assert "The trade, measured" in page.read_text()
