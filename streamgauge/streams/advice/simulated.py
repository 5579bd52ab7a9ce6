"""Advice on sessions, for which the whole stream is in one place. Pure.

Which events a session loses depends on the delay in no simple way: each delay is simulated, and only some are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from streamgauge.base.units import Tick
from streamgauge.records.advice import Advice, Question, Tested, Trade
from streamgauge.records.profile import Span
from streamgauge.streams.advice import promise, sessions
from streamgauge.streams.advice.slack import above, judged, precision, rounded_up
from streamgauge.streams.advice.windows import Values
from streamgauge.streams.disorder.definitions import BEFORE_ALL, Times
from streamgauge.streams.disorder.profile import watermark_grid

#: most delays of the grid that are tried
MOST_DELAYS = 16


@dataclass
class Sessions:
    """A whole stream in its order, whose sessions end after the question's gap; times in ticks."""

    times: Times
    keys: Times
    values: Values | None
    question: Question
    tick: Tick
    _lost: dict[int, Times] = field(default_factory=dict)
    """of each delay that was tried, the items that are lost, summed up"""

    def advice(self, span: Span, asked: Sequence[int]) -> Advice:
        """Returns the advice on the sessions. asked: delays, in ticks, that the curve must have."""
        delays = self.delays()
        rules, tests = self.rules(delays, asked), promise.blocks_for(len(self.items), self.question.share or 0.0)
        rules, asked_tests = rules[: len(rules) - len(asked)], rules[len(rules) - len(asked) :]
        advised, reason = promise.judgement(self.question, rules, len(self.items), self.tick)
        rows = sorted({*delays, *asked, *(one.delay or 0 for one in rules)})
        return Advice(
            events=len(self.times), tick=self.tick, event_time=span, question=self.question,
            curve=tuple(self.curve(rows)), advised=advised, reason=reason, blocks=tests, rules=tuple(rules),
            asked=tuple(asked), asked_tests=tuple(asked_tests),
        )  # fmt: skip

    @cached_property
    def items(self) -> Times:
        """The times of what is promised: of the events, or the ends of the sessions in ascending order."""
        return np.sort(self._ends) if self._of_answers else self.times

    @property
    def _of_answers(self) -> bool:
        return self.question.target == "windows_wrong"

    @cached_property
    def _ends(self) -> Times:
        return sessions.ends(self.times, self.keys, self.question.length)

    def lost(self, block: slice, delay: int) -> int:
        if delay not in self._lost:
            which = sessions.wrong if self._of_answers else sessions.lost
            gone = which(self.times, self.keys, self.question.length, delay)
            if self._of_answers:
                gone = gone[np.argsort(self._ends, kind="stable")]
            self._lost[delay] = np.r_[0, np.cumsum(gone)]
        return int(self._lost[delay][block.stop] - self._lost[delay][block.start])

    def delays(self) -> list[int]:
        """Delays that are tried: from none to one at which no event is late, even one that joins no session."""
        slack = judged(self.times, BEFORE_ALL, Question(answers="event")).slack + 1 - self.question.length
        slack, whole = slack[slack >= 0], precision(self.tick)
        most = rounded_up(int(slack.max(initial=-1)) + 1, self.tick)
        grid = np.array([step for step in watermark_grid(self.tick) if step % whole == 0 and step < most], np.int64)
        late = above(slack, grid)
        steps = grid[np.r_[True, late[1:] != late[:-1]]] if len(grid) else grid
        if len(steps) > MOST_DELAYS:
            steps = steps[np.linspace(0, len(steps) - 1, MOST_DELAYS).astype(int)]
        return sorted({0, most, *steps.tolist()})

    def rules(self, delays: Sequence[int], asked: Sequence[int] = ()) -> list[Tested]:
        """The rules, each of which chooses one of the delays, or twice the largest, and what was asked about.

        None without a promise.
        """
        share = self.question.share or 0.0

        def least(some: slice) -> int:
            """Returns the smallest of the delays from which on the promise holds for these items."""
            allowed = promise.allowed(some.stop - some.start, share)
            broken = [delay for delay in delays if self.lost(some, delay) > allowed]
            return next((delay for delay in delays if not broken or delay > broken[-1]), delays[-1])

        return promise.of_items(self.items, share, least, self.lost, asked)

    def curve(self, delays: Sequence[int]) -> list[Trade]:
        """Returns what each delay gives and takes."""
        return sessions.trades(self.times, self.keys, self.question.length, delays, self.values)
