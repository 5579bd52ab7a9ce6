"""Tests between which instants a window of a closed loop counts."""

from __future__ import annotations

from streamgauge.bench.driver.closed_loop import changes


def test_a_window_of_a_job_that_commits_now_and_then_begins_and_ends_with_a_commit() -> None:
    instants = [(0, 100), (1, 100), (2, 130), (3, 130), (4, 160), (5, 160)]
    assert changes(instants, None) == [(2, 130), (4, 160)]
    assert changes([(6, 160), (7, 190)], 160) == [(7, 190)]
    assert changes([(6, 190), (7, 190)], 160) == [(6, 190)], "the commit came between two looks"
    assert changes([(0, 0), (1, 0)], None) == [], "it still connects"
