"""Waiting for an output topic to be quiet: no broker, only its growing size."""

from __future__ import annotations

import itertools

import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.publish.answers import Output


class Growing(Output):
    """An output whose size changes at each of the first `looks` looks."""

    def __init__(self, looks: int) -> None:
        self._looks = itertools.chain(range(looks), itertools.repeat(looks))

    def size(self) -> int:
        return next(self._looks)


def test_an_output_that_ends_becomes_quiet() -> None:
    Growing(5).wait_until_quiet(0.2, 5.0)


def test_an_output_that_goes_on_is_never_called_complete() -> None:
    with pytest.raises(UserError, match="answers still came 0 s after the job had taken its last record"):
        Growing(10_000).wait_until_quiet(0.2, 0.5)
