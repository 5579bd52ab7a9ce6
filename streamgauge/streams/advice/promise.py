"""Rules for a delay, each tested as it would have been used: chosen on the past, tried on the block after it. Pure.

The method is the rolling origin of forecasting (Tashman, International Journal of Forecasting 16, 2000): what is tested
is the rule, on data that it has not seen, and not one delay on the data that gave it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from streamgauge.base.units import Tick, moment
from streamgauge.records.advice import Advised, Question, Realised, Tested
from streamgauge.records.profile import Span
from streamgauge.streams.advice.pieces import cut
from streamgauge.streams.advice.slack import enough
from streamgauge.streams.disorder.definitions import Times

#: the fewest blocks, of which a fifth only serve as past, and the fewest events that each is allowed to lose
LEAST_BLOCKS, LEAST_ALLOWED = 25, 5
MOST_BLOCKS = 100
#: the share of tests in which a promise must have held, and the fewest tests that count
HELD, LEAST_TESTS = Fraction(9, 10), 20
#: a delay is not tested on a stream that is, so far, less than so many times as long: nothing could be late
LEAST_LENGTHS = 2
#: what a rule calls enough: for that share of the blocks before, times a factor
RULES: dict[str, tuple[float, int]] = {
    "enough for 90 % of the blocks before": (0.90, 1),
    "enough for 95 % of the blocks before": (0.95, 1),
    "enough for every block before": (1.0, 1),
    "twice what any block before needed": (1.0, 2),
}
#: ticks of a delay that is never tested, twice of which 64 bits do not hold; whole milliseconds
_LONGEST = 2**62 // 10**9 * 10**9
NAIVE = "enough for all events before, taken together"
ASKED = "the delay that was asked about"
#: the last part of the tests, in which a delay is outgrown if it held in those before
LATELY = 5


def blocks_for(items: int, share: float) -> int:
    """Number of blocks into which so many events or windows are cut for a promise; 0 if they are too few."""
    blocks = min(MOST_BLOCKS, items // _least_block(share)) if share else 0
    return blocks if blocks >= LEAST_BLOCKS else 0


def least_items(share: float) -> int:
    """The fewest events or windows from which a promise of that share is tested."""
    return LEAST_BLOCKS * _least_block(share)


def decimal(number: float) -> Fraction:
    """The decimal that was written, as 0.7 % of 1,000 are 7, and 0.007 as a float is less."""
    return Fraction(repr(number))


def _least_block(share: float) -> int:
    """The fewest events of which LEAST_ALLOWED may be lost."""
    return math.ceil(LEAST_ALLOWED / decimal(share))


def allowed(items: int, share: float) -> int:
    """The most of so many items that may be lost."""
    return int(decimal(share) * items)


def first_test(blocks: int) -> int:
    """Number of the block on which rules are tested first."""
    return max(5, blocks // 5)


@dataclass(frozen=True)
class Choices:
    """The delays of a rule: by the blocks before each tested one, and by all blocks."""

    rule: str
    before: tuple[int, ...]
    whole: int

    @classmethod
    def of(cls, rule: str, least: Sequence[int]) -> Choices:
        """Returns what a rule chooses. least: the delay that is enough for each block."""
        quantile, factor = RULES[rule]

        def chosen(past: Sequence[int]) -> int:
            enough_for = int(np.quantile(np.asarray(past, np.int64), quantile, method="higher"))
            return min(factor * enough_for, max(enough_for, _LONGEST))

        before = tuple(chosen(least[:block]) for block in range(first_test(len(least)), len(least)))
        return cls(rule, before, chosen(least))


def constant(delay: int, blocks: int) -> Choices:
    """Returns the choices of no rule: one delay for so many blocks."""
    return Choices(ASKED, (delay,) * (blocks - first_test(blocks)), delay)


def outgrown(asked: Tested, share: float) -> Sequence[Realised] | None:
    """Returns the last fifth of a delay's tests, if it kept the promise before these and keeps it no longer.

    To keep it is to hold in 9 of 10 tests; None also for fewer than 20 tests.
    """
    tests = asked.realised
    cut_at = len(tests) - len(tests) // LATELY
    before, lately = (sum(one.share <= share for one in some) for some in (tests[:cut_at], tests[cut_at:]))
    if len(tests) < LEAST_TESTS or before < HELD * cut_at or lately >= HELD * (len(tests) - cut_at):
        return None
    return tests[cut_at:]


def choices(least: Sequence[int]) -> list[Choices]:
    """Returns what each rule chooses. least: the delay that is enough for each block."""
    return [Choices.of(rule, least) for rule in RULES]


def tested(
    made: Choices, lost: Callable[[int, int], int], sizes: Sequence[int], share: float, spans: Sequence[Span]
) -> Tested:
    """Returns how often the promise held. lost(block, delay): number that the block loses; sizes: of the blocks.

    spans: of the times in each block.
    """
    first = first_test(len(sizes))
    realised = tuple(
        Realised(span=spans[block], delay=delay, share=lost(block, delay) / sizes[block])
        for block, delay in enumerate(made.before, first)
        if LEAST_LENGTHS * delay <= _length(spans[: block + 1])
    )
    shares = [one.share for one in realised]
    return Tested(
        rule=made.rule, delay=made.whole, tests=len(shares), held=sum(one <= share for one in shares),
        realised_p50=float(np.median(shares or [0.0])), realised_max=max(shares, default=0.0), realised=realised,
    )  # fmt: skip


def _length(spans: Sequence[Span]) -> int:
    return max(span.max for span in spans) - min(span.min for span in spans)


def of_slack(slack: Times, times: Times, share: float, tick: Tick, asked: Sequence[int] = ()) -> list[Tested]:
    """Returns the rules, tested as by `of_items` on items of which one is lost if its slack is the delay or more."""

    def least(some: slice) -> int:
        return enough(slack[some], allowed(some.stop - some.start, share), tick)

    def lost(block: slice, delay: int) -> int:
        return int((slack[block] >= delay).sum())

    return of_items(times, share, least, lost, asked)


def of_items(
    times: Times, share: float, least: Callable[[slice], int], lost: Callable[[slice, int], int],
    asked: Sequence[int] = (),
) -> list[Tested]:  # fmt: skip
    """Returns the rules, tested on items in order, and then the delays that were asked about; none of too few items.

    times: of the items. least(some): the delay that is enough for these; lost(block, delay): the number that it loses.
    """
    tests = blocks_for(len(times), share)
    if not tests:
        return []
    blocks = [slice(one.start, one.stop) for one in cut(len(times), tests)]
    sizes = [one.stop - one.start for one in blocks]
    spans = [Span(min=int(times[one].min()), max=int(times[one].max())) for one in blocks]
    before = tuple(least(slice(0, one.start)) for one in blocks[first_test(tests) :])
    naive = Choices(NAIVE, before, least(slice(0, len(times))))
    made = (naive, *choices([least(one) for one in blocks]), *(constant(delay, tests) for delay in asked))
    return [tested(one, lambda block, delay: lost(blocks[block], delay), sizes, share, spans) for one in made]


def advised(rules: Sequence[Tested], share: float) -> Advised | None:
    """Returns the smallest delay whose promise held often enough; None if none did."""
    held = [one for one in rules if one.rule != NAIVE and one.tests >= LEAST_TESTS and one.held >= HELD * one.tests]
    if not held:
        return None
    best = min(held, key=lambda one: one.delay or 0)
    return Advised(
        delay=best.delay or 0, promised=share, rule=best.rule, tests=best.tests, held=best.held,
        realised_p50=best.realised_p50, realised_max=best.realised_max,
    )  # fmt: skip


def judgement(question: Question, rules: Sequence[Tested], items: int, tick: Tick) -> tuple[Advised | None, str | None]:
    """Returns the advice, or None and the reason. items: number of events, or of windows if these are promised."""
    share = question.share or 0.0
    if question.target is None:
        return None, "nothing is promised: name the share that may be lost"
    if not rules:
        what = ("event" if question.target == "lost" else question.answer) + "s" * (items != 1)
        return None, (
            f"the stream is too short to test a promise of {100 * share:g} %: found {items:,} {what}, allowed: from "
            f"{least_items(share):,} on, so that {LEAST_BLOCKS} blocks may lose {LEAST_ALLOWED} each"
        )
    best = advised(rules, share)
    return (best, None) if best is not None else (None, _too_changeable(rules, share, tick))


def best_of(rules: Sequence[Tested]) -> Tested | None:
    """Returns the rule that held most often; None if none was tested often enough."""
    tested_enough = (one for one in rules if one.rule != NAIVE and one.tests >= LEAST_TESTS)
    return max(tested_enough, key=lambda one: one.held, default=None)


def _too_changeable(rules: Sequence[Tested], share: float, tick: Tick) -> str:
    """Says why no delay is advised although there are enough events, and when the promise broke."""
    best = best_of(rules)
    if best is None:
        return (
            "the stream is too short: the delays that its blocks need are more than half of its length, "
            "so that they cannot be tested on it"
        )
    broken = [one.span for one in best.realised if one.share > share]
    when = ", ".join(f"{moment(span.min, tick)} to {moment(span.max, tick)}" for span in broken[:3])
    more = f" and {len(broken) - 3} more" if len(broken) > 3 else ""
    return (
        f"the stream changes too much: of all rules, {best.rule} held most often, in {best.held} of {best.tests} "
        f"tests, fewer than 9 of 10; it broke in {when}{more}"
    )
