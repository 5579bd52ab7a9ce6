"""A known system on the real clock and wire: the search finds its rate. `benchmarks/wire.py` tries three of them."""

from __future__ import annotations

import pytest

from streamgauge.base.units import Duration
from streamgauge.bench.measure.calibrate import calibrate_for_real
from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.config import Search
from tests.driver.conftest import favoured

__all__ = ["favoured"]

pytestmark = [pytest.mark.e2e, pytest.mark.alone]


@pytest.mark.usefixtures("favoured")
@pytest.mark.timeout(600)
def test_search_on_the_real_clock_finds_the_rate() -> None:
    behaviour = Behaviour(capacity=100_000, batch_cost_s=0.1, batch_rows=1_000_000, noise=0.05)
    plan = Search(max_age=Duration.parse("1s"), warmup_seconds=0, window_seconds=2, recovery_seconds=10)
    found = calibrate_for_real(behaviour, plan, seeds=1)
    [done] = found.searches
    assert done.rate_events_per_s == pytest.approx(behaviour.truth(1.0), rel=0.05), done
    assert done.outcome == "found", done.reason
    below, above = done.proven
    assert below is not None
    assert above is not None
    assert below < behaviour.truth(1.0) < above
