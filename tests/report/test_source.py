"""The page's section on the source: what hints say, and the order in the file beside the order that was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamgauge.catalog.artifacts import Store
from streamgauge.records.profile import Profile
from streamgauge.results.report import build
from streamgauge.streams.keys import profile_key
from tests.example_run import HINT, RUN, Recorder, benchmark, profile
from tests.report.page_reader import Page


@pytest.mark.parametrize(
    ("hints", "said"), [([HINT], f"ahead {HINT['text']}"), ([], "No hint: the times show no second unit")]
)
def test_hints_and_the_order_in_the_file(tmp_path: Path, hints: list[dict[str, Any]], said: str) -> None:
    made = benchmark(tmp_path / "source.csv")
    made = made.model_copy(update={"source": made.source.model_copy(update={"order": "event_time"})})
    facts: dict[str, Any] = {**profile(), "out_of_order": 0}
    facts["in_file"] = {**facts["in_file"], "hints": hints}
    recorder = Recorder(store := Store(tmp_path / "store"), made)
    recorder.stage("analyze", outcome=recorder.artifact("profile", profile_key(store, made), {}, profile=facts))
    text = " ".join(Page(build(made, store, RUN)).text["source"])
    assert said in text
    assert "0 events; as in the file 19.269 %" in text


def test_what_depends_on_an_order_that_nobody_knows_is_not_on_the_page(tmp_path: Path) -> None:
    made = benchmark(tmp_path / "source.csv")
    facts = Profile.model_validate(profile()).within_parts().to_json()
    recorder = Recorder(store := Store(tmp_path / "store"), made)
    recorder.stage("analyze", outcome=recorder.artifact("profile", profile_key(store, made), {}, profile=facts))
    text = " ".join(Page(build(made, store, RUN)).text["source"])
    assert "out of order unknown as the topic has no append times: only the order within a partition is known" in text
    assert "Frequency over event time" in text
    assert "watermark" not in text
    assert "Could not" not in text
