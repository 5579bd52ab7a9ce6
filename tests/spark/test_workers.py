"""Copies of a process that share work: they leave alone what they have from it."""

from __future__ import annotations

import gc

from streamgauge.streams.stages.workers import Forked


class Client:
    """An object of the first process in a circle, as of Kafka's clients: only a collection ends it."""

    ended: list[bool]

    def __init__(self, ended: list[bool]) -> None:
        self.ended, self.me = ended, self

    def __del__(self) -> None:
        self.ended.append(True)


def test_a_copy_does_not_end_what_the_first_process_left_behind() -> None:
    ended: list[bool] = []
    gc.collect()
    gc.disable()
    try:
        Client(ended)

        def work(_: int) -> int:
            gc.collect()
            return len(ended)

        assert Forked(2).each([1, 2], work) == [0, 0]
        assert not ended
        gc.collect()
        assert ended == [True]
    finally:
        gc.enable()
