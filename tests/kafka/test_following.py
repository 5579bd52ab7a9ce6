"""Tests what a follower concludes from its looks at a job."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.engines.job.following import Follower, Starving, Trickle
from streamgauge.bench.publish.progress import Reached


@pytest.mark.parametrize(
    ("published", "looks", "share"),
    [
        (100, 45, 40 / 45),  # the job takes all that is published at once; from its sixth look on it waits
        (100, 10, 5 / 20),  # a few looks count as 20
        (900, 45, 0.0),  # the job has more to take
    ],
)
def test_a_job_starves_that_has_taken_all_that_was_published_though_more_was_offered(
    published: int, looks: int, share: float
) -> None:
    starving = Starving()
    for look in range(looks):
        starving.look(offered=published + 100 + look, published=published + look, planned=100 + look)
    assert starving.share == share


def test_a_job_that_waits_for_rows_is_given_one_more_at_each_look_until_it_commits() -> None:
    trickle = Trickle()
    looks = [
        ({}, True, 0.0),  # it has committed nothing: it may not have begun
        ({0: 0}, True, 1.0),
        ({0: 500}, True, 2.0),
        ({0: 500}, True, 2.2),  # not for long yet
        ({0: 500}, False, 2.5),  # rows are on their way to it
        ({0: 500}, True, 2.6),
        ({0: 500}, True, 2.7),
        ({0: 502}, True, 2.8),
        ({0: 502}, True, 2.9),
    ]
    assert [trickle.look(*look) for look in looks] == [0, 0, 0, 0, 0, 1, 2, 0, 0]


@pytest.mark.parametrize(
    ("away", "failure"),
    [(False, "the job has not taken the rows that warm it up within 60 s: it tells of 0 rows; it printed nothing"),
     (True, "the broker is away")],
)  # fmt: skip
def test_a_job_is_blamed_for_taking_nothing_and_not_for_a_broker_that_is_away(
    tmp_path: Path, away: bool, failure: str
) -> None:
    def reached() -> Reached:
        if away:
            raise UserError("the broker is away")
        return Reached({}, {})

    def run(*arguments: Any) -> bool:
        taken: Callable[[], int] = arguments[1]
        return taken() > 0

    given: Any = SimpleNamespace(
        queues=1, reached=reached, name="it", published=[1], run=run, since=time.monotonic(),
        last_words=lambda: "it printed nothing",
    )  # fmt: skip
    follower = Follower(given, given, given, lambda: True, 1.0, given, False, given, tmp_path)
    while follower.failure is None:
        time.sleep(0.01)
    follower.stop()
    assert (follower.failure, follower.blames_job) == (failure, not away)
