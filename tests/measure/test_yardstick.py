"""The yardstick: the same work always, on the CPUs it was given, and the arithmetic of the machine's own times."""

from __future__ import annotations

import math
import os
import threading
import time
from pathlib import Path

import pytest

from streamgauge.bench.measure import yardstick
from streamgauge.bench.measure.yardstick import CpuTimes, Yardstick, moved, steal, table, work

STAT = """\
cpu  1000 20 300 5000 40 5 6 70 8 9
cpu0 100 10 200 3000 30 3 4 50 8 0
cpu1 900 10 100 2000 10 2 2 20 0 9
cpu10 1 1 1 1 1 1 1 1 1 1
intr 243042 0 0
ctxt 474129
"""


def test_times_are_summed_over_the_cpus_that_were_asked_for() -> None:
    assert CpuTimes.of(STAT, [0]) == CpuTimes(busy=100 + 10 + 200 + 3 + 4, idle=3030, stolen=50)
    assert CpuTimes.of(STAT, {0, 1}) == CpuTimes(busy=317 + 1014, idle=3030 + 2010, stolen=70)
    assert CpuTimes.of(STAT) == CpuTimes(busy=317 + 1014 + 5, idle=5040 + 2, stolen=71)
    assert CpuTimes.of(STAT, [7]) == CpuTimes.of("") == CpuTimes()
    assert CpuTimes.of("cpu0 1 2 3 4") == CpuTimes(busy=6, idle=4)  # a kernel that tells less


def test_shares_are_of_the_time_in_between() -> None:
    earlier = CpuTimes(busy=100, idle=1000, stolen=50)
    assert CpuTimes(160, 1030, 60).stolen_since(earlier) == 0.1
    assert CpuTimes(200, 999, 150).stolen_since(earlier) == 0.5  # iowait may fall
    assert math.isnan(earlier.stolen_since(earlier))


def test_where_nothing_tells_the_times_they_are_not_a_number(tmp_path: Path) -> None:
    missing = steal(stat=tmp_path / "stat")
    assert missing == CpuTimes()
    assert math.isnan(missing.stolen_since(missing))
    (tmp_path / "stat").write_text(STAT)
    assert steal([1], tmp_path / "stat") == CpuTimes.of(STAT, [1])


def scrambled(word: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        word = (word ^ (word >> 33)) * factor % 2**64
    return word


def test_the_work_is_the_same_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against plain Python's integers, on a small table; then twice on the large one."""
    for name, value in {"_ROWS": 64, "_TABLE_ROWS": 256, "_PIECE_ROWS": 32, "_GROUP_BITS": 3, "_GROUPS": 8}.items():
        monkeypatch.setattr(yardstick, name, value)
    looked_up = [scrambled(row) for row in range(256)]
    assert table().tolist() == looked_up
    total = 0
    for unit in range(10):
        keys = sorted(looked_up[scrambled(unit * 64 + row) % 256] for row in range(64))
        groups = [sum(key for key in keys if key >> 61 == group) % 2**64 for group in range(8)]
        assert all(any(key >> 61 == group for key in keys) for group in range(8)), "choose another size"
        piece = looked_up[unit * 32 % 256 :][:32]
        for words in (groups, piece):
            mixed = 0
            for word in words:
                mixed ^= word
            total += mixed
    assert work(10, table()) == total % 2**64
    monkeypatch.undo()
    large = table()
    before = large.copy()
    assert work(3, large) == work(3, large) != work(2, large)
    assert (large == before).all()


def test_each_cpu_does_all_of_the_work_on_itself_and_the_caller_stays_where_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = []

    def spy(units: int, looked_up: yardstick.Words) -> int:
        done.append((units, frozenset(os.sched_getaffinity(0)), threading.current_thread().name))
        return work(units, looked_up)

    monkeypatch.setattr(yardstick, "work", spy)
    allowed = os.sched_getaffinity(0)
    pins = {thread.native_id: os.sched_getaffinity(thread.native_id or 0) for thread in threading.enumerate()}
    stick = Yardstick(units=2)
    began = time.perf_counter()
    speed = stick.run()
    assert speed > 2 / (time.perf_counter() - began), "a CPU's part is no longer than the whole"
    warm_up, timed = [{row for row in done if row[0] == units} for units in (1, 2)]
    assert timed == {(2, frozenset({cpu}), f"yardstick-{cpu}") for cpu in allowed}
    assert len(done) == 2 * len(allowed)
    assert {row[1:] for row in warm_up} == {row[1:] for row in timed}
    assert os.sched_getaffinity(0) == allowed
    assert pins.items() <= {t.native_id: os.sched_getaffinity(t.native_id or 0) for t in threading.enumerate()}.items()
    assert not any(thread.name.startswith("yardstick") for thread in threading.enumerate())
    assert stick.cpus == tuple(sorted(allowed))


def test_cpus_that_are_not_ours_are_left_out() -> None:
    first = min(os.sched_getaffinity(0))
    assert Yardstick([first, 4095], units=1).cpus == (first,)
    with pytest.raises(ValueError, match=r"found CPUs \[4095\] and 1 unit, allowed: some of \["):
        Yardstick([4095], units=1)
    with pytest.raises(ValueError, match="at least 1 unit"):
        Yardstick(units=0)


def test_a_cpu_that_goes_meanwhile_is_an_error_and_no_endless_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    stick = Yardstick(units=1)

    def refuse(*_: object) -> None:
        raise OSError("it is offline")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    with pytest.raises(OSError, match="it is offline"):
        stick.run()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(500, 500, False), (500, 549, False), (500, 551, True), (551, 500, True), (549, 500, False), (500, 100, True)],
)
def test_moved_in_either_direction(before: float, after: float, expected: bool) -> None:
    assert moved(before, after, 0.1) is expected
    assert moved(before, after, 10.0) is False
