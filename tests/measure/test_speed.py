"""The machine's speed beside a search: what is told when it changed, and the rate over it."""

import pytest

from streamgauge.bench.measure.searcher import changed_speed
from streamgauge.bench.measurements.search.record import Doubt


@pytest.mark.parametrize(
    ("ladder", "trials"), [([], [300.0]), ([300.0, 310.0], []), ([300.0, 310.0], [380.0, 250.0]), ([300.0], [300.0])]
)
def test_a_steady_machine_is_no_doubt(ladder: list[float], trials: list[float]) -> None:
    assert changed_speed(ladder, trials) == ()


def test_a_slow_minute_that_covers_the_whole_ladder_is_told() -> None:
    """Slows a real Spark by two busy loops on its CPU for the minute of the ladder, gone in the second trial."""
    [doubt] = changed_speed([352.0, 350.0, 360.0], [355.0, 921.0])
    assert doubt == Doubt(
        "machine's speed",
        "the machine's speed was 352 yardstick units/s in the ladder and 921 after a proof trial: "
        "something else ran on the system's CPUs; search again",
    )


def test_a_machine_that_became_slower_is_told() -> None:
    assert "was 900 yardstick units/s in the ladder and 600 after" in changed_speed([900.0], [890.0, 600.0])[0].sentence
