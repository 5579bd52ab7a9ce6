"""Faults: a strike, a link that is cut, the course of a trial after it, and what an engine reads again."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.conversation import Ended
from streamgauge.bench.driver.queue import Queue
from streamgauge.bench.driver.system import Adapter, Endpoint, NotStruck
from streamgauge.bench.engines.spark.connections import endpoints_of, options_of
from streamgauge.bench.engines.spark.progress import joined, planned_in
from streamgauge.bench.faults.course import Course, course
from streamgauge.bench.faults.link import Link
from streamgauge.bench.faults.strike import Strike
from streamgauge.records.measurement import Sample
from streamgauge.records.trial import EngineBatch


def samples(*looks: tuple[float, float, int]) -> list[Sample]:
    return [Sample(at, age, 0, taken) for at, age, taken in looks]


def test_the_course_after_a_strike() -> None:
    clock = samples((1, 0.1, 0), (3, 1.0, 0), (5, 3.0, 0), (6, 0.2, 0), (8, 0.2, 0), (12, 0.1, 0))
    handed = samples((1, 0.1, 10), (2, 0.1, 20), (5.5, 3.5, 30), (7, 0.6, 90), (7.5, 0.3, 95), (11, 0.3, 120))
    assert course(handed, clock, 2.0, 0.5) == Course(3.5, 5.5, 3.5)
    assert course(handed, clock, 2.0, 9.0) == Course(3.5, 3.5, 3.5), "it was never beyond the bound"
    assert course(handed, clock, 1.0, 9.0, away_s=2.0) == Course(4.5, 4.5, 3.5), "until 2 s the old query took rows"
    assert course(handed[:2], clock[:3], 2.0, 0.5) == Course(None, None, 3.0)
    assert course(handed[:5], clock[:5], 2.0, 0.5) == Course(3.5, None, 3.5), "who knows whether it stays?"
    last = samples((8, 5.0, 20))  # which the driver adds at the end
    assert course([*handed[:2], *last], clock[:3], 2.0, 0.5) == Course(None, None, 3.0)


class _Killed:
    """Notes what is asked of it; it does not come up again if `problem` is set."""

    def __init__(self, problem: Exception | None = None, struck: Exception | None = None) -> None:
        self.asked: list[str] = []
        self._problem, self._struck = problem, struck

    def brace(self, fault: str) -> None:
        pass

    def strike(self, fault: str) -> None:
        self.asked.append(fault)
        if self._struck is not None:
            raise self._struck

    def rescale(self) -> None:
        self.resume()
        self.asked[-1] = "rescale"

    def resume(self) -> None:
        self.asked.append("resume")
        if self._problem is not None:
            raise self._problem

    def pin(self) -> None:
        self.asked.append("pin")


def test_what_was_killed_goes_on_with_the_cpus_that_it_had_and_what_does_not_come_up_ends_the_trial() -> None:
    drivers: Any = [{"state": "started", "start_wall_ns": time.time_ns() - 10**9}]
    system = _Killed()
    strike = Strike("kill", 0.5)
    strike(cast(Adapter, system), Path(), drivers)
    assert system.asked == ["kill", "resume", "pin"]
    assert strike.resumed_s is not None
    Strike("rescale", 0.5)(cast(Adapter, system), Path(), drivers)
    assert system.asked[3:] == ["rescale", "pin"]
    own = _Killed()
    Strike("cut", 0.5, 0.01, cuts_itself=True)(cast(Adapter, own), Path(), drivers)
    assert own.asked == ["cut", "resume"], "it cuts and mends its own network"
    strike = Strike("restart", 0.5)
    with pytest.raises(Ended, match=r"^the fault restart was not brought about: no worker$"):
        strike(cast(Adapter, _Killed(struck=UserError("no worker"))), Path(), drivers)
    assert strike.failure == "", "the system has not failed"
    for problem in (UserError("no port"), OSError(98, "Address already in use")):
        strike = Strike("kill", 0.5)
        with pytest.raises(Ended, match=r"^it did not go on after the fault kill: .*(no port|in use)$") as ended:
            strike(cast(Adapter, _Killed(problem)), Path(), drivers)
        assert strike.failure == str(ended.value)
        assert strike.struck_s is not None
    for strike in (Strike("rescale", 0.5), Strike("cut", 0.5, 0.01, cuts_itself=True)):
        with pytest.raises(Ended) as ended:
            strike(cast(Adapter, _Killed(NotStruck("exit 3"))), Path(), drivers)
        assert str(ended.value) == f"the fault {strike.fault} was not brought about: exit 3"
        assert (strike.missed, strike.failure, strike.struck_s) == (str(ended.value), "", None)


def test_a_link_that_cannot_be_mended_is_no_failure_of_the_system() -> None:
    drivers: Any = [{"state": "started", "start_wall_ns": time.time_ns() - 10**9}]
    with socket.create_server(("127.0.0.1", 0)) as server:
        strike = Strike("cut", 0.5, 0.1)
        with strike.between((Endpoint("127.0.0.1", server.getsockname()[1]),)) as [to]:

            def take() -> None:
                time.sleep(0.05)
                taken.append(socket.create_server((to.host, to.port)))

            taken: list[socket.socket] = []
            thread = threading.Thread(target=take)
            thread.start()
            with pytest.raises(Ended, match=r"^the fault cut was not brought about: the link cannot be mended: "):
                strike(cast(Adapter, _Killed()), Path(), drivers)
            thread.join()
            taken[0].close()
    assert (strike.failure, strike.struck_s) == ("", None)


def test_a_fault_counts_from_its_begin_and_what_is_taken_until_it_is_over_is_of_the_old_one() -> None:
    class Slow(_Killed):
        def strike(self, fault: str) -> None:
            super().strike(fault)
            time.sleep(0.3)

    drivers: Any = [{"state": "started", "start_wall_ns": time.time_ns() - 10**9}]
    strike = Strike("restart", 0.5)
    strike(cast(Adapter, Slow()), Path(), drivers)
    assert strike.struck_s is not None
    assert 0.3 <= strike.away_s - strike.struck_s < 0.6


def test_what_is_taken_over_before_a_fault_takes_no_time_of_it() -> None:
    class Braced(_Killed):
        def brace(self, fault: str) -> None:
            self.asked.append(f"brace for {fault}")
            time.sleep(0.3)

    system, begun_ns = Braced(), time.time_ns()
    drivers: Any = [{"state": "started", "start_wall_ns": begun_ns}]
    strike = Strike("kill", 0.1)
    strike(cast(Adapter, system), Path(), drivers)
    assert system.asked == ["brace for kill", "kill", "resume", "pin"]
    assert strike.struck_s is not None
    assert strike.resumed_s is not None
    assert strike.struck_s >= 0.3
    assert strike.resumed_s - strike.struck_s < 0.2


@pytest.mark.parametrize(("cut_s", "away"), [(0.3, 0.2), (0.05, 0.05)])
def test_what_had_been_committed_just_before_a_cut_is_not_taken_after_it(cut_s: float, away: float) -> None:
    drivers: Any = [{"state": "started", "start_wall_ns": time.time_ns() - 10**9}]
    strike = Strike("cut", 0.5, cut_s, cuts_itself=True)
    strike(cast(Adapter, _Killed()), Path(), drivers)
    assert strike.struck_s is not None
    assert away <= strike.away_s - strike.struck_s < away + 0.12


def test_a_link_passes_bytes_on_until_it_is_cut_and_again_once_it_is_mended() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, Link(Endpoint("127.0.0.1", server.getsockname()[1])) as link:
        place = link.endpoint.host, link.endpoint.port
        near, far = socket.create_connection(place, timeout=5), server.accept()[0]
        near.sendall(b"there")
        assert far.recv(9) == b"there"
        far.sendall(b"back")
        assert near.recv(9) == b"back"
        link.cut()
        assert near.recv(9) == b""
        assert far.recv(9) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(place, timeout=5)
        link.mend()
        with socket.create_connection(place, timeout=5) as again:
            again.sendall(b"more")
            assert server.accept()[0].recv(9) == b"more"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(place, timeout=5)


def test_who_uses_a_link_is_as_patient_as_the_cut_is_long() -> None:
    with Link(Endpoint("127.0.0.1", 1, token="t"), 40.0) as link:
        assert link.endpoint.patience_s == 43.0
        [told] = endpoints_of(options_of((link.endpoint,), "a"))
    assert told == link.endpoint


def test_rows_that_are_read_again_are_counted_once_for_each_time() -> None:
    queue = Queue()
    queue.append(pa.RecordBatch.from_pydict({"n": range(10)}), np.zeros(10, np.int64))
    queue.reveal(1)
    for start, end in ((0, 4), (4, 8), (2, 6), (6, 10)):
        queue.read(start, end, 16)
    assert queue.again == 4 + 2


def test_micro_batches_of_a_spark_that_was_started_again_are_joined(tmp_path: Path) -> None:
    """Batch 1 was told before the kill, 2 is in the checkpoint alone, and 3 was begun before it and ended after it."""
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    for number, row, watermark_ms in ((1, 10, 0), (2, 20, 500), (3, 30, 900)):
        lines = ["v1", json.dumps({"batchWatermarkMs": watermark_ms, "conf": {}}), json.dumps({"0": row})]
        (offsets / str(number)).write_text("\n".join(lines))
    (offsets / ".3.crc").write_text("crc")
    before: list[EngineBatch] = [
        {"batch_id": n, "watermark_ms": 0, "ends": [{"0": 10 * n}], "dropped": 0} for n in (0, 1)
    ]
    after: list[EngineBatch] = [{"batch_id": 3, "watermark_ms": 900, "ends": [{"0": 30}], "dropped": 4}]
    plans = planned_in(tmp_path)
    assert [one["batch_id"] for one in plans] == [1, 2, 3]
    batches = joined(plans, before, after)
    assert [one["batch_id"] for one in batches] == [0, 1, 2, 3]
    assert [one["ends"] for one in batches] == [[{"0": 10 * n}] for n in range(4)]
    assert [one["watermark_ms"] for one in batches] == [0, 0, 500, 900]
    assert [one.get("dropped") for one in batches] == [0, 0, None, 4]
    without: list[EngineBatch] = [{**one, "watermark_ms": None} for one in before]
    assert {one["watermark_ms"] for one in joined(plans, without)} == {None}
