"""The demo, from an installed wheel to a page."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.test_wheel import Installed


@pytest.mark.e2e
@pytest.mark.prove
@pytest.mark.timeout(600)
def test_the_demo_ends_with_a_page_that_compares_two_streams_of_one_process(tmp_path: Path) -> None:
    installed = Installed(tmp_path)
    told = json.loads(installed.run("streamgauge", "demo", "--json", PATH=f"{installed.home}/bin:{os.environ['PATH']}"))
    assert told["exit_code"] == 0
    page = Path(told["page"])
    assert "A demonstration, of one short process and without proof" in page.read_text()
    ordered, late = (
        json.loads((page.parent / "cells" / f"{stream}.hourly.spark" / "search.json").read_text())
        for stream in ("ordered", "late20")
    )
    assert len(ordered["processes"]) == len(late["processes"]) == 1
    assert {ordered["claim"]["kind"], late["claim"]["kind"]} == {"estimated"}, "nothing is proven"
    runs = json.loads((page.parent / "cells" / "late20.hourly.spark" / "latency.json").read_text())
    assert [run["correct"] for run in runs] == [True]
    (compared,) = late["compared"]
    assert (compared["against"], compared["processes"], compared["blocks"] >= 5) == ("ordered", 1, True)
