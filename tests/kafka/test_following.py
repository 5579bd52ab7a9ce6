"""Tests what a follower concludes from its looks at a job."""

from __future__ import annotations

import pytest

from streamgauge.bench.engines.job.following import Starving, Trickle


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
