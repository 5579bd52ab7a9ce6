"""Says in one sentence how many events an engine dropped by itself: late, before 1970, or by its own count alone."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.measure.dropped import dropped
from streamgauge.records.measurement import TrialObservation
from streamgauge.records.rules import Operator, Rules
from streamgauge.records.trial import Compared, Details


@pytest.mark.parametrize(
    ("check", "figures", "kind", "sentence"),
    [
        ({"late_events": 0, "early_events": 0}, {"late_dropped": 9}, None, None),
        (None, {"late_dropped": None}, None, None),
        ({"wrong": None}, {}, None, None),
        ({"late_events": 3, "early_events": 0}, {}, "late", "it dropped 3 of 24,000 events as late"),
        (
            {"late_events": 18_000, "early_events": 17_000}, {}, "before the first watermark",
            "it dropped 18,000 of 24,000 events as late, 17,000 of them because they end before 1970, where its "
            "watermark begins",
        ),
        (
            {"late_events": 5, "early_events": 2}, {"begins_ms": 946_684_800_000}, "before the first watermark",
            "it dropped 5 of 24,000 events as late, 2 of them because they end before 2000-01-01T00:00:00.000, where "
            "its watermark begins",
        ),
        (
            None, {"late_dropped": 1_200}, "by its own count", "it dropped 1,200 events as late, by its own count"
        ),
        (
            None, {"batches": [{"dropped": 7}]}, "by its own count",
            "it dropped 7 groups of events as late, by its own count",
        ),
        (None, {"batches": [{"dropped": 7}, {}]}, None, None),
    ],
)  # fmt: skip
def test_it_is_said(check: Compared | None, figures: Any, kind: str | None, sentence: str | None) -> None:
    rules = Rules(
        (Operator("event"),),
        begins_ms=figures.get("begins_ms", 0),
        late_counted="groups" if "batches" in figures else "rows",
    )
    details: Details = {"system": figures, "rules": rules}
    run = TrialRun(TrialObservation(1, 1, (), 24_000, 24_000), details, Histogram(), Histogram())
    found = dropped(check, run)
    assert (found and found.kind, found and found.sentence) == (kind, sentence)
