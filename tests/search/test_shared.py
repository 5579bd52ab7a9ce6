"""The plan of cells that share a process: its order, its blocks, its resumption, and the ratio of known systems."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from benchmarks.in_turns import TurningProcess, shared_search
from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.bench.search.shared import AllDone, Measured, Turn, block_order, next_turn, ratio, whole_blocks
from streamgauge.bench.search.steps import Hold
from streamgauge.config import Search
from streamgauge.records.measurement import Batch, Limits, Measurement, Window

CAPPED = Behaviour(1e6, 0.05, 200_000, noise=0.05, between=0.05)
SETTINGS = Search(proof_steps=0, warmup_seconds=30)


def recorded(streams: list[Behaviour], settings: Search = SETTINGS) -> tuple[list[Measured], AllDone]:
    """Runs a shared search of the known system without a proof; returns its measurements and its end."""
    process = TurningProcess(streams[0], 1, 1)
    measured: list[Measured] = []
    while isinstance(turn := next_turn(settings, Limits(), len(streams), measured), Turn):
        step = turn.step
        assert isinstance(step, Hold)
        process.turn_to(streams[turn.cell], step.rows)
        batches = process.hold(step.rows, step.enough)
        measured.append(
            Measured(turn.cell, Window(step.process, step.purpose, step.rows, batches, block=step.block, life=1))
        )
    return measured, turn


def pairs(measured: list[Measured]) -> list[tuple[int, Window]]:
    return [(one.cell, one.of) for one in measured if isinstance(one.of, Window) and one.of.purpose == "pair"]


def test_phases_follow_each_other_and_rungs_are_visited_by_all_streams() -> None:
    measured, _ = recorded([CAPPED, replace(CAPPED, capacity=9e5), replace(CAPPED, capacity=1.1e6)])
    purposes = [one.of.purpose for one in measured]
    assert sorted(purposes, key=["warm-up", "ladder", "pair"].index) == purposes
    for purpose in ("warm-up", "ladder"):
        visits: Counter[int] = Counter()
        for one in measured:
            if one.of.purpose == purpose:
                visits[one.cell] += 1
                assert max(visits.values()) - min(visits[cell] for cell in range(3)) <= 2


def test_a_block_goes_there_and_back_in_a_seeded_order() -> None:
    measured, done = recorded([CAPPED, replace(CAPPED, capacity=9e5)])
    cells = [cell for cell, _ in pairs(measured)]
    orders = [tuple(cells[at : at + 4]) for at in range(0, len(cells), 4)]
    assert set(orders) == {(0, 1, 1, 0), (1, 0, 0, 1)}
    assert orders == [tuple(block_order(1, block, 2)) for block in range(len(orders))]
    assert done.ratios[0] is not None
    assert (done.ratios[0].blocks, done.ratios[0].processes) == (len(orders), 1)


def test_an_interrupted_search_goes_on_where_it_was_and_a_lost_process_counts_no_block_twice() -> None:
    streams = [CAPPED, replace(CAPPED, capacity=9e5)]
    measured, done = recorded(streams)
    for kept in range(len(measured)):
        turn = next_turn(SETTINGS, Limits(), 2, measured[:kept])
        assert isinstance(turn, Turn)
        assert (turn.cell, turn.step.purpose) == (measured[kept].cell, measured[kept].of.purpose)
    # the process is lost in the middle of the third block: two whole ones stay, and the third is given up
    places = [place for place, one in enumerate(measured) if one.of.purpose == "pair"]
    lost = measured[: places[10]]
    again: list[Measured] = [
        Measured(one.cell, replace(one.of, life=2)) for one in measured if isinstance(one.of, Window)
    ]
    resumed = [*lost, *(one for one in again if one.of.purpose != "pair")]
    turn = next_turn(SETTINGS, Limits(), 2, resumed)
    assert isinstance(turn, Turn)
    assert isinstance(turn.step, Hold)
    assert (turn.step.purpose, turn.step.block, turn.step.reason) == ("pair", 3, "block 4, window 1 of 4")
    assert len(whole_blocks(resumed, 1, 2)) == 2
    assert isinstance(done, AllDone)


def test_a_system_that_dies_in_the_second_window_of_each_start_is_given_up() -> None:
    measured: list[Measured] = []
    while isinstance(turn := next_turn(SETTINGS, Limits(), 2, measured), Turn):
        life, dies = 1 + len(measured) // 2, len(measured) % 2 == 1
        assert life < 20, "it is started without end"
        measured.append(Measured(turn.cell, Window(1, "warm-up", 1000, (), "it died" if dies else None, life)))
    given_up = ("inconclusive", "the system was lost 5 times: it died")
    assert [(one.outcome, one.reason) for one in turn.cells] == [given_up] * 2
    assert turn.ratios == (None,)


def test_windows_of_another_life_and_invalid_ones_fill_no_block() -> None:
    batches = (Batch(1.0, 1000, 1.0), Batch(2.0, 1000, 1.0))

    def window(life: int, invalid: str | None = None) -> Measurement:
        return Window(1, "pair", 1000, batches, invalid, life)

    mixed = [Measured(0, window(1)), Measured(1, window(1)), Measured(1, window(2)), Measured(0, window(2))]
    assert whole_blocks(mixed, 1, 2) == []
    with_invalid = [*(Measured(cell, window(1)) for cell in (0, 1, 1)), Measured(0, window(1, "stolen"))]
    assert whole_blocks(with_invalid, 1, 2) == []
    assert len(whole_blocks([*with_invalid, Measured(0, window(1))], 1, 2)) == 1


def test_the_ratio_of_known_systems_is_found() -> None:
    faster, logs, held = replace(CAPPED, capacity=1.03e6), [], 0
    for seed in range(4):
        base, other = (CAPPED, faster) if seed % 2 else (faster, CAPPED)
        exact = other.truth(10) / base.truth(10)
        done, _ = shared_search([base, other], SETTINGS, seed)
        one = done.ratios[0]
        assert one is not None
        logs.append(math.log(one.ratio / exact))
        held += one.low <= exact <= one.high
    assert abs(sum(logs) / len(logs)) < 0.01  # processes themselves differ by 5 %
    assert held >= 3


def test_a_stream_against_itself_differs_by_nothing_but_noise() -> None:
    quiet = replace(CAPPED, noise=0.0, between=0.0)
    measured, _ = recorded([quiet, quiet])
    one = ratio(SETTINGS, Limits(), measured, 1)
    assert one is not None
    assert one.ratio == pytest.approx(1.0)
    assert all(a.held_rows == b.held_rows for (_, a), (_, b) in pairwise(pairs(measured)))


def test_blocks_that_began_before_the_cap_was_seen_are_judged_at_the_cap() -> None:
    """Their batches are smaller, and so cost more a row: taken as they are, they would say little of the cap's."""
    measured = []
    for cell, slower in ((0, 1.0), (1, 1.25)):
        cost = [slower * (0.5 + 1e-6 * rows) for rows in (20_000, 60_000, 200_000)]
        for rows, seconds, held in zip((20_000, 60_000, 200_000), cost, (20_000, 60_000, 400_000), strict=True):
            measured.append(Measured(cell, Window(1, "ladder", held, (Batch(50.0, rows, seconds),) * 8)))
        held = 200_000 if cell else 20_000  # of one stream at the cap, of the other far below it
        windows = [Window(1, "pair", held, (Batch(60.0, held, cost[2 if cell else 0]),) * 6, block=b) for b in range(6)]
        measured += [Measured(cell, window) for window in windows for _ in range(2)]
    compared = ratio(SETTINGS, Limits(), measured, 1)
    assert compared is not None
    assert compared.ratio == pytest.approx(1 / 1.25, rel=0.02)
