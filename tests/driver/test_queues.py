"""A queue gives the rows of a plain list, whatever is appended, read, planned and committed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.bench.driver.queue import OffsetError
from streamgauge.bench.driver.queues import Queues, fitting_rows, held_rows

step = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 5), st.integers(0, 3)),
    st.tuples(st.just("read"), st.integers(-1, 12), st.integers(0, 12)),
    st.tuples(st.just("commit"), st.integers(-1, 12), st.just(0)),
    st.tuples(st.just("plan"), st.integers(-1, 12), st.just(0)),
    st.tuples(st.just("clock"), st.integers(0, 6), st.just(0)),
)


def rows(first: int, walls: list[int]) -> tuple[pa.RecordBatch, np.ndarray]:
    numbers = pa.array(range(first, first + len(walls)), pa.int64())
    return pa.RecordBatch.from_arrays([numbers], names=["n"]), np.array(walls, np.int64)


def read(queues: Queues, start: int, end: int, now: int, **limit: int) -> list[int]:
    return [n for batch in queues.read(0, start, end, now, **limit) for n in batch.column("n").to_pylist()]


@settings(deadline=None)
@given(st.lists(step, max_size=40))
def test_any_history_gives_the_rows_of_the_model(history: list[tuple[str, int, int]]) -> None:
    queues = Queues(1, 10**9)
    walls: list[int] = []  # the model: row number -> when it is due
    now = offered = committed = planned = 0
    for what, a, b in history:
        if what == "append":
            due = [(walls[-1] if walls else 0) + b] * a
            queues.append(0, *rows(len(walls), due))
            walls += due
        elif what == "clock":
            now += a
        offered = sum(wall <= now for wall in walls)
        if what == "read":
            if committed <= a <= a + b <= offered:
                assert read(queues, a, a + b, now, max_batches=99) == list(range(a, a + b))
            else:
                with pytest.raises(OffsetError):
                    read(queues, a, a + b, now)
        elif what == "commit":
            if committed <= a <= offered:
                queues.commit({0: a}, now)
                committed, planned = a, max(a, planned)
            else:
                with pytest.raises(OffsetError):
                    queues.commit({0: a}, now)
        elif what == "plan":
            if 0 <= a <= offered:
                queues.plan({0: a}, now)
                planned = max(a, planned)
            else:
                with pytest.raises(OffsetError):
                    queues.plan({0: a}, now)
        state = queues.state(now)
        assert (state["offered"], state["planned"], state["committed"]) == ([offered], [planned], [committed])
        waiting = walls[planned] if planned < offered else now
        assert state["age_s"] == pytest.approx((now - waiting) / 1e9)


def test_a_commit_frees_whole_batches_only() -> None:
    queues = Queues(1, 100)
    for first in (0, 4, 8):
        queues.append(0, *rows(first, [0] * 4))
    queues.commit({0: 7}, 1)
    assert queues.state(1)["batches"] == 2
    assert read(queues, 7, 9, 1) == [7, 8]
    queues.commit({0: 8}, 1)
    assert queues.state(1)["batches"] == 1


def test_a_read_stops_at_so_many_batches() -> None:
    queues = Queues(1, 100)
    for first in (0, 4, 8):
        queues.append(0, *rows(first, [0] * 4))
    assert read(queues, 1, 12, 1, max_batches=2) == [1, 2, 3, 4, 5, 6, 7]


def test_one_bad_offset_changes_nothing() -> None:
    queues = Queues(2, 100)
    queues.append(0, *rows(0, [0] * 4))
    queues.append(1, *rows(0, [0] * 4))
    with pytest.raises(OffsetError, match="found 5"):
        queues.commit({0: 2, 1: 5}, 1)
    with pytest.raises(OffsetError, match="partition"):
        queues.plan({0: 2, 2: 1}, 1)
    assert queues.state(1)["planned"] == [0, 0]


def test_in_a_closed_loop_each_queue_holds_its_share_of_the_rows() -> None:
    queues = Queues(3, 100, hold=10, shares=[0.7, 0.3, 0])
    for number in (0, 1):
        queues.append(number, *rows(0, [0] * 20))
    assert queues.offered(1) == [7, 3, 0]
    queues.plan({0: 5}, 1)
    assert queues.offered(1) == [12, 3, 0]


def test_a_full_queue_overflows_and_keeps_what_it_offered() -> None:
    queues = Queues(1, 10)
    queues.append(0, *rows(0, list(range(50))))
    assert queues.offered(5) == [6]
    early = queues.overflow
    queues.offered(20)
    assert (early, queues.overflow, queues.uncommitted) == (False, True, False), "they waited"
    assert read(queues, 0, queues.offered(49)[0], 49) == list(range(21))


def test_the_batch_in_flight_is_no_backlog() -> None:
    """Planned rows do not wait: a system that is slow to commit does not overflow its queue twice."""
    queues = Queues(1, 10, memory_rows=100)
    queues.append(0, *rows(0, list(range(60))))
    queues.plan({0: queues.offered(7)[0]}, 7)
    assert queues.offered(14) == [15]
    assert not queues.overflow
    queues.offered(20)
    assert queues.overflow


def test_rows_that_are_never_committed_overflow_the_memory() -> None:
    queues = Queues(1, 1000, memory_rows=20)
    queues.append(0, *rows(0, list(range(60))))
    for at in range(0, 30, 5):
        queues.plan({0: queues.offered(at)[0]}, at)
    assert queues.overflow
    assert queues.uncommitted, "the system had taken them"


def test_a_closed_loop_keeps_so_many_rows_waiting() -> None:
    queues = Queues(1, 100, hold=10)
    queues.append(0, *rows(0, list(range(50))))
    assert queues.offered(40) == [10]
    queues.commit({0: 7}, 40)
    assert queues.offered(40) == [17]
    queues.hold(0)
    queues.commit({0: 17}, 40)
    assert queues.offered(40) == [17], "held back, so that the system can be waited for"
    queues.hold(20)
    assert queues.offered(40) == [37]
    queues.plan({0: 27}, 40)
    assert queues.offered(60) == [47], "rows wait for the next batch while one is under way, committed or not"
    assert not queues.overflow
    with pytest.raises(OffsetError, match="open the trial with `hold`"):
        Queues(1, 100).hold(5)


def test_a_closed_loop_prepares_a_batch_beside_the_one_in_work_and_keeps_what_is_not_committed() -> None:
    queues = Queues(1, 100, memory_rows=60, hold=10)
    at, seen = 0, []
    for planned, committed in [(0, 0), (10, 0), (10, 10), *((planned, 10) for planned in range(20, 80, 10))]:
        assert queues.offered(1)[0] >= planned
        queues.plan({0: planned}, 1)
        queues.commit({0: committed}, 1)
        while queues.roomy(0):
            queues.append(0, *rows(at, [0]))
            at += 1
        seen.append(at)
    assert seen == [21, 21, 31, 31, 41, 51, 61, 71, 71], "the last: 60 rows fill the memory"


@pytest.mark.parametrize(("hold", "asks", "left"), [(10, False, 10), (10, True, 20), (None, False, 50)])
def test_a_closed_loop_takes_back_the_rows_of_which_the_system_has_not_heard(
    hold: int | None, asks: bool, left: int
) -> None:
    queues = Queues(1, 100, hold=hold)
    queues.append(0, *rows(0, list(range(50))))
    queues.plan({0: min(10, queues.latest(9)[0])}, 9)
    assert queues.offered(60) == [50 if hold is None else 20]
    if asks:
        queues.latest(60)
    assert queues.cut(60) == left
    queues.append(0, *rows(100, [0] * 5))
    queues.plan({0: left}, 60)
    assert read(queues, left, queues.latest(60)[0], 60) == list(range(100, 105))


def test_a_change_of_stream_after_the_end_leaves_the_sentinels() -> None:
    queues = Queues(1, 100, hold=10)
    queues.append(0, *rows(0, [0] * 10))
    queues.latest(1)
    queues.finish(1, rows(10, [0])[0])
    assert queues.cut(2) == 11
    assert queues.latest(2) == [11]


def test_a_backlog_is_offered_at_the_start_and_not_before() -> None:
    queues = Queues(1, 100)
    queues.append(0, *rows(0, [1, 2, 3, 12]))
    queues.from_ns = 10
    assert queues.offered(9) == [0]
    assert queues.offered(10) == [3]
    assert queues.state(10)["age_s"] == 9e-9


def test_the_clock_takes_samples_while_the_system_plans_nothing() -> None:
    second = 10**9
    queues = Queues(1, 100)
    queues.append(0, *rows(0, [second, 2 * second, 3 * second]))
    queues.tick(2 * second)
    queues.plan({0: 2}, 2 * second)
    queues.tick(4 * second)
    found = [(s.wall_ns // second, s.age_s, s.backlog, s.taken) for s in queues.clock]
    assert found == [(2, 1.0, 2, 0), (4, 1.0, 1, 2)]


def test_rows_due_at_the_end_or_later_are_never_offered_and_every_queue_ends_with_the_sentinel() -> None:
    queues = Queues(2, 100)
    queues.append(0, *rows(0, [1, 5, 9]))
    queues.append(1, *rows(0, [2, 6, 10]))
    queues.until_ns = 6
    assert queues.offered(100) == [2, 1]
    sentinel, _ = rows(-1, [6])
    queues.finish(6, sentinel)
    assert queues.offered(100) == [3, 2]
    assert read(queues, 0, 3, 100) == [0, 1, -1]
    queues.append(0, *rows(3, [11]))  # the filling thread was in the middle of it
    assert queues.offered(100) == [3, 2]


def test_a_sample_is_taken_before_each_plan_that_takes_something() -> None:
    second = 10**9
    queues = Queues(2, 100)
    queues.append(0, *rows(0, [second, 2 * second, 3 * second]))
    queues.append(1, *rows(0, [0, 3 * second]))
    queues.plan({0: 1, 1: 1}, 2 * second)
    queues.plan({0: 1, 1: 1}, 2 * second)  # nothing new: no micro-batch
    queues.plan({0: 3, 1: 2}, 4 * second)
    found = [(s.wall_ns // second, s.age_s, s.backlog, s.taken) for s in queues.samples]
    assert found == [(2, 2.0, 3, 0), (4, 2.0, 3, 2)]


def test_samples_by_the_clock_stand_for_equally_many_looks_however_long_a_trial_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Samples of later times would else be single looks beside earlier peaks: a level age would fall."""
    monkeypatch.setattr("streamgauge.bench.driver.queues.MAX_SAMPLES", 4)
    queues, ages = Queues(1, 1000), [3, 8, 1, 6, 2, 7, 4, 9, 5, 3, 8, 1, 6, 2, 7, 4, 9]
    queues.append(0, *rows(0, [1000 * at for at in range(1, 100)]))
    for at, age in enumerate(ages, start=1):
        queues.tick(1000 * at + age)
        queues.plan({0: at}, 1000 * at + age)
    each = 8
    parts = [ages[begin : begin + each] for begin in range(0, len(ages), each)]
    assert [round(sample.age_s * 1e9) for sample in queues.clock] == [max(part) for part in parts]


def test_a_trial_of_very_many_batches_thins_its_samples_and_keeps_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgauge.bench.driver.queues.MAX_SAMPLES", 4)
    queues = Queues(1, 1000)
    queues.append(0, *rows(0, [0] * 100))
    for at, age in enumerate([1, 9, 3, 2, 5, 4], start=1):
        queues.plan({0: at}, age)
    assert [s.age_s for s in queues.samples] == [9e-9, 3e-9, 5e-9, 4e-9]


def test_a_reader_of_held_rows_sleeps_until_others_are_planned() -> None:
    queues = Queues(1, 100, hold=2)
    queues.append(0, *rows(0, [1, 1, 1, 1]))
    assert queues.wait(0, 0, 10, 1.0) is None
    assert (queues.wait(0, 2, 10, 1.0) or 0) > 0, "they are due, but held back: not a busy loop"
    queues.plan({0: 1}, 10)
    assert queues.wait(0, 2, 10, 1.0) is None


def test_a_closed_loop_holds_half_of_what_fits_as_the_system_works_on_the_other() -> None:
    assert held_rows(64) == fitting_rows(64) // 2 == 2**18
    assert held_rows(10**6) == 8_000_000
