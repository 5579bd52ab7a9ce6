"""The sum over processes that come and go, against a small kernel that keeps the truth."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from streamgauge.bench.engines.account import ROUNDING_TICKS, Account, Reading

INIT, LEADER = 1, 100


@dataclass
class Process:
    parent: int
    own: int = 0
    reaped: int = 0
    zombie: bool = False


class Kernel:
    """Processes as Linux keeps them: a parent's children's time rises when it reaps, by all that the child had."""

    def __init__(self, seed: int, orphans: bool) -> None:
        self.random, self.orphans = random.Random(seed), orphans
        self.table = {LEADER: Process(INIT)}
        self.truth, self.last = 0, LEADER

    def step(self) -> None:
        pid = self.random.choice([pid for pid, process in self.table.items() if not process.zombie])
        process = self.table[pid]
        match self.random.choice(["fork", "burn", "burn", "exit", "reap", "reap"]):
            case "fork" if len(self.table) < 12:
                self.last += 1
                self.table[self.last] = Process(pid)
            case "burn":
                ticks = self.random.randrange(50)
                process.own, self.truth = process.own + ticks, self.truth + ticks
            case "exit" if pid != LEADER and (self.orphans or not self.children(pid)):
                self.exit(pid)
            case "reap":
                self.reap(pid)
            case _:
                pass

    def children(self, pid: int) -> list[int]:
        return [child for child, process in self.table.items() if process.parent == pid]

    def exit(self, pid: int) -> None:
        self.table[pid].zombie = True
        for child in self.children(pid):
            self.table[child].parent = INIT
            if self.table[child].zombie:
                del self.table[child]
        if self.table[pid].parent == INIT or (self.orphans and self.random.random() < 0.2):  # SIGCHLD is ignored
            del self.table[pid]

    def reap(self, pid: int) -> None:
        for child in self.children(pid):
            if self.table[child].zombie:
                gone = self.table.pop(child)
                self.table[pid].reaped += gone.own + gone.reaped

    def reading(self, pid: int) -> Reading:
        process = self.table[pid]
        return Reading(pid, process.parent, LEADER, pid, process.own, process.reaped, ended=process.zombie)

    def look(self, account: Account, moving: bool) -> None:
        """Readings of /proc: while the processes move on, no two readings are of one moment."""
        readings = []
        for pid in self.random.sample(sorted(self.table), len(self.table)):
            if pid in self.table:
                readings.append(self.reading(pid))
            for _ in range(self.random.randrange(4) if moving else 0):
                self.step()
        account.look(readings, {reading.pid for reading in readings} - set(self.table))


@pytest.mark.parametrize("moving", [False, True])
def test_nothing_is_lost_of_children_that_their_parents_reap(moving: bool) -> None:
    for seed in range(400):
        kernel, account = Kernel(seed, orphans=False), Account()
        for _ in range(12):
            before = account.ticks
            for _ in range(kernel.random.randrange(25)):
                kernel.step()
            kernel.look(account, moving)
            assert before <= account.ticks <= kernel.truth
        while len(kernel.table) > 1:  # all end
            for pid in [pid for pid in kernel.table if pid != LEADER and not kernel.children(pid)]:
                kernel.table[pid].zombie = True
            for pid in list(kernel.table):
                kernel.reap(pid)
        kernel.look(account, moving=False)
        assert account.ticks == kernel.truth, seed


@pytest.mark.parametrize("moving", [False, True])
def test_nothing_counts_twice_whoever_reaps(moving: bool) -> None:
    for seed in range(400):
        kernel, account = Kernel(seed, orphans=True), Account()
        for _ in range(25):
            before = account.ticks
            for _ in range(kernel.random.randrange(25)):
                kernel.step()
            kernel.look(account, moving)
            assert before <= account.ticks <= kernel.truth, seed


def test_a_child_that_nobody_reaped_does_not_hide_later_ones() -> None:
    """A parent ignores its child; a child that no look has seen is reaped long after."""
    account = Account()

    def look(*rows: tuple[int, int, int, int]) -> int:
        account.look([Reading(pid, parent, 1, pid, own, reaped) for pid, parent, own, reaped in rows])
        return account.ticks

    assert look((1, 0, 5, 0), (2, 1, 100, 0)) == 105
    assert look((1, 0, 5, 0)) == 105
    assert look((1, 0, 5, 0)) == 105
    assert look((1, 0, 5, 50)) == 155 - ROUNDING_TICKS


def test_times_that_are_cut_to_ticks_do_not_add_up() -> None:
    """The kernel gives 9 ticks for a child that was seen with 10, then 11 for another one with 10."""
    account = Account()
    for reaped in range(0, 2000, 20):
        account.look([Reading(1, 0, 1, 1, 0, reaped), Reading(2, 1, 1, reaped + 2, 10, 0)])
        account.look([Reading(1, 0, 1, 1, 0, reaped + 9), Reading(3, 1, 1, reaped + 3, 10, 0)])
    assert account.ticks == 2000


def test_a_number_that_is_used_again_is_another_process() -> None:
    account = Account()
    account.look([Reading(1, 0, 1, 1, 5, 0), Reading(2, 1, 1, 10, 100, 0)])
    account.look([Reading(1, 0, 1, 1, 5, 120), Reading(2, 1, 1, 11, 7, 0)])
    assert account.ticks == 5 + 120 + 7


def test_a_line_of_proc_is_read_whatever_the_name() -> None:
    line = "42 (a) b (c)) S 7 42 6 0 -1 4194304 100 0 1 0 11 22 33 44 20 0 3 0 5678 3133440 10 18446744073709551615 1"
    reading = Reading.of(line)
    assert (reading.pid, reading.parent, reading.session, reading.started_ticks) == (42, 7, 6, 5678)
    assert (reading.own_ticks, reading.reaped_ticks, reading.ended) == (33, 77, False)
    assert Reading.of(line.replace(" S ", " Z ").replace(" 20 0 3 ", " 20 0 1 ")).ended
    assert not Reading.of(line.replace(" S ", " Z ")).ended  # its other threads run on
