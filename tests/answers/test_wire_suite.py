"""Asks a system over the wire that says nonsense of itself: its answer stays unchecked, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamgauge.bench.answers.hard_queries import events, offered
from streamgauge.bench.answers.wire_suite import asked, served
from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.workloads import Spec
from streamgauge.records.rules import Operator, Rules
from tests.driver.in_thread import InThread

ROWS = offered(events(200, 0.0, longest_s=1))


class Babbling(InThread):
    """Passes events on, and adds figures to its own."""

    def __init__(self, more: Any) -> None:
        super().__init__()
        self.more = more

    def end_trial(self, timeout_s: float) -> Any:
        figures = super().end_trial(timeout_s) | {"drained": True}
        return figures | self.more if isinstance(self.more, dict) else self.more


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with served(ROWS, {"name": "string", "amount": "int64"}, tmp_path_factory.mktemp("served") / "stream") as started:
        yield started


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, "the engine gives no account of the rows that it took"),
        (None, "the system's figures: found None, allowed: an object"),
        ({"stretches": 5}, "the system's figures: stretches: found 5, allowed: a valid list"),
        ({"cpu_seconds": -1.0}, "the system's figures: cpu_seconds: found -1.0, allowed: greater than or equal to 0"),
        (
            {"rules": Rules((Operator("never", 10_000_000, 10_000_000),), clock="own key")},
            "the system's figures: rules: found clock 'own key', allowed: clock 'all queues', as its adapter declares",
        ),
    ],
)
def test_an_answer_whose_figures_are_none_is_unchecked(fleet: Fleet, tmp_path: Path, more: Any, why: str) -> None:
    answer = asked(Babbling(more), fleet, Spec("passthrough"), {}, ROWS, tmp_path)
    assert (answer.status, answer.why) == ("unchecked", why)


def test_rules_that_are_none_refuse_one_query_and_do_not_end_the_suite(fleet: Fleet, tmp_path: Path) -> None:
    class Undeclared(Babbling):
        def rules(self, spec: Spec) -> Rules:
            return Rules((Operator("window", spec.length_us),))

    answer = asked(Undeclared({}), fleet, Spec("passthrough"), {}, ROWS, tmp_path)
    why = "slide_us: found 0, allowed: a whole part of the window's length, 10000000"
    assert (answer.status, answer.why) == ("unsupported", why)


def test_an_account_that_lacks_rows_leaves_one_query_unchecked(fleet: Fleet, tmp_path: Path) -> None:
    class Judging(Babbling):
        def rules(self, spec: Spec) -> Rules:
            return Rules(spec.operators("event"))

    told = {"stretches": [{"ends": [{"0": 1}], "watermark_ms": None}]}
    answer = asked(Judging(told), fleet, Spec("passthrough"), {}, ROWS, tmp_path)
    assert (answer.status, answer.why) == ("unchecked", "some offered rows were taken by no batch")
