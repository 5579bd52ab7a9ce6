"""Rows of a job that goes on: moved behind those before, and told apart from them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.ids import Ids, Laps, Turn
from streamgauge.bench.oracle.own_sql import EARLIER, PARTITION
from streamgauge.bench.publish.answers import offered
from streamgauge.bench.publish.moving import After, Mover
from streamgauge.bench.publish.warming import PASSES, Ahead, begin_of
from tests.kafka.test_records import DAY, rows

US = 10**3


def test_rows_follow_those_of_the_trial_before_by_a_gap_and_keep_their_distances() -> None:
    given = [
        rows({}, False, {"seq": 3, "event_time": 5 * US}, {"seq": 4, "event_time": 2 * US}),
        rows({}, False, {"seq": 5, "event_time": 9 * US}, {"seq": -1, "event_time": 99 * US, "sentinel": True}),
    ]
    first = Mover(None, "ns")
    assert [first.moved(batch) for batch in given] == given
    assert (first.latest, first.seq) == (99 * US, 5)

    mover = Mover(After(first.latest, first.seq, 100 * US), "ns")
    moved = pa.Table.from_batches([mover.moved(batch) for batch in given])
    assert moved.column("event_time").to_pylist() == [202 * US, 199 * US, 206 * US, 296 * US]
    assert moved.column("event_ts").cast(pa.int64()).to_pylist() == [202, 199, 206, 296]
    assert moved.column("seq").to_pylist() == [9, 10, 11, -1]
    assert (mover.latest, mover.seq) == (296 * US, 11)


def test_times_that_do_not_fit_are_an_error_and_no_time_of_another_century() -> None:
    mover = Mover(After(2**63 - 150 * US, 0, 100 * US), "ns")
    mover.moved(rows({}, False, {"seq": 1, "event_time": 5 * US}))
    with pytest.raises(UserError, match="times that do not fit into 64 bits"):
        mover.moved(rows({}, False, {"seq": 2, "event_time": 60 * US}))


def test_rows_of_earlier_trials_count_as_warm_and_come_before_all_others(tmp_path: Path) -> None:
    for name, walls in (("a", [50, 40]), ("b", [45, 60]), ("now", [55, 70])):
        (tmp_path / name).mkdir()
        table = pa.table({"offered_wall": walls, "event_wall": [1, 2], "name": [name, name]})
        with pa.ipc.new_stream(str(tmp_path / name / "events-0.arrow"), table.schema) as out:
            out.write_table(table)
    assert offered(tmp_path / "now", 1, [tmp_path / "a", tmp_path / "b"]).to_pylist() == [
        {"offered_wall": 2, "event_wall": 2, "name": "a", PARTITION: 0, EARLIER: True},
        {"offered_wall": 1, "event_wall": 1, "name": "a", PARTITION: 0, EARLIER: True},
        {"offered_wall": 3, "event_wall": 3, "name": "b", PARTITION: 0, EARLIER: True},
        {"offered_wall": 4, "event_wall": 4, "name": "b", PARTITION: 0, EARLIER: True},
        {"offered_wall": 55, "event_wall": 1, "name": "now", PARTITION: 0, EARLIER: False},
        {"offered_wall": 70, "event_wall": 2, "name": "now", PARTITION: 0, EARLIER: False},
    ]


def test_rows_that_warm_a_job_up_come_before_the_stream_and_each_has_a_seq_of_its_own(tmp_path: Path) -> None:
    for number, seqs in enumerate(([0, 2, 4], [1, 3])):
        given: list[dict[str, object]] = [
            {"seq": seq, "event_time": DAY + 10 * US * seq, "offered_wall": seq} for seq in seqs
        ]
        batch = rows({}, False, *given, {"seq": -1, "event_time": DAY + 10**6 * US, "sentinel": True})
        with pa.ipc.new_stream(str(tmp_path / f"events-{number}.arrow"), batch.schema) as out:
            out.write_batch(batch)
    begin = begin_of(tmp_path, 2, "ns", Laps(Ids(), 1, (3, 2)))
    assert begin is not None

    def parts(at: int) -> tuple[list[dict[str, object]], list[int]]:
        batch, queues = begin.part(at, 10)
        batch = batch.select(["seq", "event_time", "event_ts", "sentinel"])
        return batch.set_column(2, "event_ts", batch.column("event_ts").cast("int64")).to_pylist(), queues.tolist()

    span = 30 * US + 30 * US // 4  # of the rows, and their mean gap

    def moved(seq: int, times: int) -> dict[str, object]:
        time = DAY + 10 * US * seq - times * span
        return {"seq": seq - 4 * times - 1, "event_time": time, "event_ts": time // US, "sentinel": False}

    assert (begin.passes, begin.rows) == (PASSES, 4 * PASSES)
    last = begin.rows - 4
    # the row 4 is left out, as the other queue's 5 is not known
    assert parts(last) == ([moved(seq, 1) for seq in range(4)], [0, 1, 0, 1])
    assert parts(last + 3) == ([moved(3, 1)], [1])
    assert parts(0) == ([moved(seq, PASSES) for seq in range(4)], [0, 1, 0, 1])
    assert len({parts(at)[0][0]["seq"] for at in range(begin.rows)}) == 4 * PASSES


def test_a_queue_that_gets_no_rows_is_left_out_of_the_warm_up(tmp_path: Path) -> None:
    nothing = rows({}, False, {"seq": -1, "event_time": DAY, "sentinel": True})
    given: list[dict[str, object]] = [{"seq": seq, "event_time": DAY + 10 * US * seq} for seq in range(4)]
    some = rows({}, False, *given)
    for number, batch in enumerate((nothing, some)):
        with pa.ipc.new_stream(str(tmp_path / f"events-{number}.arrow"), batch.schema) as out:
            out.write_batch(batch)
    begin = begin_of(tmp_path, 2, "ns", Laps(Ids(), 1, (0, 4)))
    assert begin is not None
    assert begin.part(begin.rows - 4, 9)[1].tolist() == [1, 1, 1, 1]
    assert begin_of(tmp_path, 2, "ns", Laps(Ids(), 1, (2, 4))) is None, "its rows have not come yet"


def test_rows_that_warm_a_job_up_have_ids_of_their_own_in_each_pass_and_loop(tmp_path: Path) -> None:
    given: list[dict[str, object]] = [
        {"seq": seq, "event_time": DAY + 10 * US * seq, "id": seq % 2} for seq in range(4)
    ]
    batch = rows({"id": "int64"}, False, *given)
    with pa.ipc.new_stream(str(tmp_path / "events-0.arrow"), batch.schema) as out:
        out.write_batch(batch)
    begin = begin_of(tmp_path, 1, "ns", Laps(Ids({"id": 10}), 5, (2,)))  # two loops of two rows were kept
    assert begin is not None
    ids = [value for at in range(0, begin.rows, 4) for value in begin.part(at, 4)[0].column("id").to_pylist()]
    numbers = [Turn(5, lap).number for lap in range(2 * PASSES)]
    assert ids == [10 * number + value for number in numbers for value in (0, 1)]
    assert len(set(ids)) == begin.rows


def test_more_rows_wait_for_a_job_that_takes_many_from_one_commit_to_the_next() -> None:
    group, batches = Ahead(100, is_batched=False), Ahead(100, is_batched=True)
    commits = [0, 90, 90, 200, 1000, 1100]
    assert [group.look(rows) for rows in commits] == [100, 180, 180, 220, 1600, 1600]
    assert [batches.look(rows) for rows in commits] == [100] * 6
