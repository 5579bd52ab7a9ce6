"""Measures what each watermark delay loses of a stream, and which one keeps its promise, in two passes of a few tasks.

The first pass finds how much each block of the stream needs, from which the rules choose; the second counts exactly
what their delays lose. A task holds one block at a time, and a row for each window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np

from streamgauge.base.errors import UserError
from streamgauge.base.units import Tick
from streamgauge.catalog.artifacts import Artifact
from streamgauge.records.advice import Advice, Question, Tested, Trade
from streamgauge.records.manifests import EventsManifest
from streamgauge.records.profile import Span
from streamgauge.streams.advice import joins, promise, simulated, windows
from streamgauge.streams.advice.pieces import Block, Keys, Stream, cut, numbered, tasks
from streamgauge.streams.advice.promise import Choices
from streamgauge.streams.advice.slack import above, enough, precision, revisions, rounded_up
from streamgauge.streams.advice.windows import Lacks, Panes, Waits
from streamgauge.streams.disorder.definitions import Times
from streamgauge.streams.disorder.profile import Spread, bucket_edges, watermark_grid
from streamgauge.streams.stages.workers import Workers

#: most windows by key; each takes about 100 bytes
MOST_WINDOWS = 10_000_000
#: most events of sessions and joins, which need the whole stream in one place
MOST_WHOLE = 20_000_000


@dataclass
class _Needs:
    """Least delay that keeps the promise in a block. slack: of its late events."""

    span: Span
    enough: int
    slack: Spread


@dataclass
class _First:
    """Figures of a task's first pass. late: events lost at each step of the grid."""

    late: Times
    needs: list[_Needs]
    panes: Panes | None
    keys: Keys


@dataclass
class _Second:
    """Figures of a task's second pass, at each delay. by_test: events lost by each block at each rule's delay."""

    lost: Times
    in_part: Times
    revised: Times
    by_test: list[list[int]]
    lacks: Lacks | None
    waits: Waits | None


def measure(workers: Workers, events: Artifact, question: Question, asked: Sequence[int] = ()) -> Advice:
    """Measures an artifact with event times in stream order. asked: delays, in ticks, that the curve must have.

    Raises UserError.
    """
    manifest = events.read(EventsManifest)
    return of_files(workers, events.files(), manifest.tick, question, asked, with_arrival=manifest.arrival)


def of_files(
    workers: Workers,
    files: Sequence[Path | str],
    tick: Tick,
    question: Question,
    asked: Sequence[int] = (),
    *,
    with_arrival: bool = False,
) -> Advice:
    """Measures Parquet files with event times in stream order, as `measure` does."""
    stream = Stream.of(files, question, with_arrival=with_arrival and question.windows)
    span = stream.span
    if span.max - span.min + question.length >= 2**63 or span.max + question.length >= 2**63:
        raise UserError(f"event times reach from {span.min} to {span.max} {tick}, beyond 64 bits with a window")
    if question.answers in ("session", "join") and stream.events > MOST_WHOLE:
        raise UserError(
            f"--{question.answers}: found {stream.events:,} events, allowed: {MOST_WHOLE:,}, since all are held at once"
        )
    if question.answers == "session":
        times, keys, values, _ = stream.whole()
        return simulated.Sessions(times, keys, values, question, tick).advice(span, asked)
    advice = _Advising(stream, tick, workers.cores).advice(workers, span, asked)
    if question.answers == "join":
        times, keys, _, left = stream.whole()
        curve = joins.with_pairs(advice.curve, times, keys, left, question.length)
        return advice.model_copy(update={"curve": tuple(curve)})
    return advice


class _Advising:
    """Passes over a stream. Their tasks take it with them, to Spark's workers too, so it holds no workers."""

    def __init__(self, stream: Stream, tick: Tick, cores: int) -> None:
        self._stream, self._tick, self._cores = stream, tick, cores
        self._question = question = stream.question
        self._share = question.share or 0.0
        tests = promise.blocks_for(stream.events, self._share) if question.target == "lost" else 0
        self._blocks = cut(stream.events, tests or min(stream.events, 4 * cores))
        self._tests = tests
        whole = precision(tick)
        self._grid = np.array([step for step in watermark_grid(tick) if step % whole == 0], np.int64)

    def advice(self, workers: Workers, span: Span, asked: Sequence[int]) -> Advice:
        firsts = workers.each(tasks(self._blocks, self._cores), self._first)
        late, needs = np.sum([one.late for one in firsts], axis=0), [need for one in firsts for need in one.needs]
        known, keys = self._windows(firsts)
        made, rules = self._choices(needs, asked), list[Tested]()
        if known is not None and self._question.target == "windows_wrong":
            rules = self._of_windows(known, asked)
        most = rounded_up(max((need.slack.largest + 1 for need in needs if need.slack.count), default=0), self._tick)
        delays = _delays(self._grid, late, most, [*asked, *(one.whole for one in made), *(r.delay or 0 for r in rules)])
        items = numbered(tasks(self._blocks, self._cores))
        seconds = workers.each(items, lambda item: self._second(*item, delays, made, known, keys))
        if made:
            by_block = [lost for one in seconds for lost in one.by_test]
            spans, sizes = [need.span for need in needs], [block.events for block in self._blocks]
            rules = [
                _tested(one, [lost[n] for lost in by_block], sizes, self._share, spans) for n, one in enumerate(made)
            ]
        asked_tests = rules[len(rules) - len(asked) :] if rules else []
        rules = rules[: len(rules) - len(asked_tests)]
        of_windows = known if self._question.target == "windows_wrong" else None
        number = self._stream.events if of_windows is None else len(of_windows.ends)
        advised, reason = promise.judgement(self._question, rules, number, self._tick)
        return Advice(
            events=self._stream.events,
            tick=self._tick,
            event_time=span,
            question=self._question,
            curve=tuple(self._curve(delays, seconds, known)),
            advised=advised,
            reason=reason,
            blocks=self._tests,
            rules=tuple(rules),
            asked=tuple(asked),
            asked_tests=tuple(asked_tests),
        )

    # -- passes

    def _first(self, blocks: list[Block]) -> _First:
        keys, late, needs = Keys(), np.zeros(len(self._grid), np.int64), []
        panes = list[Panes]()
        for block in blocks:
            slacks, lows, highs = [], [], []
            for piece in self._stream.pieces(block.start, block.stop, keys):
                events = piece.events
                slacks.append(events.slack[events.slack >= 0])
                lows.append(int(events.ends.min()))
                highs.append(int(events.ends.max()))
                if self._question.windows:
                    panes.append(Panes.of(events, piece.number, piece.keys, piece.values))
            slack = np.concatenate(slacks)
            late += above(slack, self._grid)
            allowed = promise.allowed(block.events, self._share)
            needs.append(
                _Needs(Span(min=min(lows), max=max(highs)), enough(slack, allowed, self._tick), Spread.of(slack))
            )
        return _First(late, needs, Panes.merged(panes) if panes else None, keys)

    def _second(
        self, blocks: list[Block], begin: int, delays: Times, made: list[Choices], known: Panes | None, keys: Keys
    ) -> _Second:
        lost, in_part, revised = np.zeros((3, len(delays)), np.int64)
        by_test, lacks, waits = list[list[int]](), list[Lacks](), list[Waits]()
        first = promise.first_test(self._tests)
        for number, block in enumerate(blocks, begin):
            chosen = [one.before[number - first] for one in made] if number >= first else [0] * len(made)
            of_block = [0] * len(made)
            for piece in self._stream.pieces(block.start, block.stop, keys):
                events = piece.events
                lost += above(events.slack[events.slack >= 0], delays)
                in_part += above(events.slack_in_part[events.slack_in_part >= 0], delays)
                if self._question.allowed_lateness:
                    revised += revisions(events, delays, self._question)
                of_block = [n + int((events.slack >= delay).sum()) for n, delay in zip(of_block, chosen, strict=True)]
                if known is not None:
                    lacks.append(Lacks.of(events, self._question, delays, piece.keys, piece.values))
                    waits.append(Waits.of(events, piece.arrival, known, delays.tolist()))
            by_test.append(of_block)
        if known is None:
            return _Second(lost, in_part, revised, by_test, None, None)
        return _Second(lost, in_part, revised, by_test, Lacks.merged(lacks), reduce(Waits.__add__, waits))

    # -- between them

    def _windows(self, firsts: Sequence[_First]) -> tuple[Panes | None, Keys]:
        keys, parts = Keys(), list[Panes]()
        for one in firsts:
            if one.panes is not None:
                numbers = [keys.numbers.setdefault(name, len(keys.numbers)) for name in one.keys.numbers]
                own = np.array(numbers or [0], np.int64)[one.panes.keys]
                parts.append(Panes(**{**vars(one.panes), "keys": own}))
        if not parts:
            return None, keys
        whole = Panes.merged(parts).windows(self._question)
        if len(whole.ends) > MOST_WINDOWS:
            raise UserError(
                f"found {len(whole.ends):,} windows by key, allowed: {MOST_WINDOWS:,}; take longer windows, or no --key"
            )
        return whole, keys

    def _choices(self, needs: Sequence[_Needs], asked: Sequence[int]) -> list[Choices]:
        """Returns what each rule chooses if a share of lost events is promised.

        The naive one is the first, and the delays that were asked about are the last.
        """
        if not self._tests:
            return []
        before, so_far, past = [], Spread(), 0
        for need, block in zip(needs, self._blocks, strict=True):
            before.append(self._naive(so_far, past))
            so_far, past = so_far + need.slack, past + block.events
        naive = Choices(promise.NAIVE, tuple(before[promise.first_test(self._tests) :]), self._naive(so_far, past))
        constant = (promise.constant(delay, self._tests) for delay in asked)
        return [naive, *promise.choices([need.enough for need in needs]), *constant]

    def _naive(self, slack: Spread, events: int) -> int:
        """The smallest delay that loses at most the share of these events; within 0.4 % above it."""
        place = slack.count - 1 - promise.allowed(events, self._share)
        if place < 0:
            return 0
        ((bucket, _),) = slack.ranks({"": place}).values()
        return rounded_up(bucket_edges(bucket)[1], self._tick)

    def _of_windows(self, known: Panes, asked: Sequence[int]) -> list[Tested]:
        """The rules, if a share of wrong windows is promised; the blocks are of windows in the order of their ends."""
        share = self._share
        self._tests = promise.blocks_for(len(known.ends), share)
        return promise.of_slack(windows.slack(known, self._question), known.ends, share, self._tick, asked)

    # -- results

    def _curve(self, delays: Times, seconds: Sequence[_Second], known: Panes | None) -> Iterator[Trade]:
        question = self._question
        lost = np.sum([one.lost for one in seconds], axis=0)
        in_part = np.sum([one.in_part for one in seconds], axis=0)
        revised = np.sum([one.revised for one in seconds], axis=0) if question.allowed_lateness else None
        wrong, waits = None, None
        if known is not None:
            lacks = Lacks.merged([one.lacks for one in seconds if one.lacks is not None])
            wrong = windows.wrong(known, lacks, len(delays), with_values=question.value is not None)
            waits = reduce(Waits.__add__, [one.waits for one in seconds if one.waits is not None])
        for n, delay in enumerate(delays.tolist()):
            trade = Trade(
                delay=delay,
                lost=int(lost[n]),
                lost_in_part=int(in_part[n]),
                revised=None if revised is None else int(revised[n]),
            )
            if known is not None and wrong is not None and waits is not None:
                trade = trade.model_copy(
                    update={
                        "windows": len(known.ends),
                        "windows_wrong": wrong[n].windows,
                        "count_error": wrong[n].count_error,
                        "value_error": wrong[n].value_error,
                        "wait": windows.wait(waits.times[n]),
                        "wait_arrival": windows.wait(waits.arrivals[n]) if waits.arrivals else None,
                        "open_windows": windows.most_open(known, delay + question.allowed_lateness),
                    }
                )
            yield trade


def _tested(made: Choices, lost: Sequence[int], sizes: Sequence[int], share: float, spans: Sequence[Span]) -> Tested:
    return promise.tested(made, lambda block, _: lost[block], sizes, share, spans)


def _delays(grid: Times, late: Times, most: int, others: Sequence[int]) -> Times:
    """The delays of the curve: the steps at which the loss changes, the least that loses nothing, and others."""
    changes = np.r_[False, late[1:] != late[:-1]]
    steps = {0, most, *grid[changes & (grid < most)].tolist(), *others}
    return np.array(sorted(steps), np.int64)
