"""Ids: others in each turn, the same ones back, and what a column may be."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.ids import Ids, Turn
from streamgauge.bench.driver.marking import Marking
from streamgauge.bench.driver.replay import Feed, Replay, offered_rows
from streamgauge.bench.driver.schedule import schedule
from tests.driver.conftest import stream_of

TURNS = [Turn(*pair) for pair in product((0, 1, 2, 7), (0, 1, 2, 300))]
WHOLE = st.integers(-(2**63), 2**63 - 1)


def column(values: list[object]) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64() if all(isinstance(v, int) for v in values) else pa.string())})


@given(st.lists(st.one_of(st.integers(-1000, 1000), WHOLE), min_size=1, unique=True))
def test_numbers_stay_apart_and_come_back(values: list[int]) -> None:
    rows = column(list(values))
    ids = Ids.of(rows, ["id"])
    for turn in TURNS:
        marked = ids.marked(rows, turn)
        assert len(set(marked.column("id").to_pylist())) == len(values)
        assert ids.plain(marked, turn) == rows


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, unique=True))
def test_no_two_turns_share_a_number(values: list[int]) -> None:
    ids = Ids.of(column(list(values)), ["id"])
    found = [ids.marked(column(list(values)), turn).column("id").to_pylist() for turn in TURNS]
    assert len({value for one in found for value in one}) == len(TURNS) * len(values)


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, unique=True))
def test_texts_come_back(values: list[str]) -> None:
    rows = column(list(values))
    ids = Ids.of(rows, ["id"])
    for turn in TURNS:
        assert ids.plain(ids.marked(rows, turn), turn) == rows


def test_values_of_a_turn() -> None:
    uuid = "123e4567-e89b-12d3-a456-426614174000"
    table = pa.table({"n": [12, -7, None], "s": ["a", None, ""], "u": [uuid, None, uuid[::1]]})
    ids = Ids.of(table, ["n", "s", "u"])
    found = ids.marked(table, Turn(1, 2)).to_pydict()
    assert (found["n"], found["s"]) == ([512, -507, None], ["a~1.2", None, "~1.2"])  # 5 = the number of (1, 2)
    assert found["u"][0][8:] == uuid[8:]
    assert found["u"][0] == found["u"][2] != uuid
    assert int(found["u"][0][:8], 16) >= 0
    assert ids.plain(ids.marked(table, Turn(1, 2)), Turn(1, 2)).to_pydict() == table.to_pydict()
    assert ids.marked(table, Turn(0)).to_pydict() == table.to_pydict()


def test_numbers_without_room_differ_all_the_same() -> None:
    table = pa.table({"n": [2**63 - 1, 5 * 10**18, -(2**63)]})
    ids = Ids.of(table, ["n"])
    found = {value for turn in TURNS for value in ids.marked(table, turn).column("n").to_pylist()}
    assert len(found) == 3 * len(TURNS)


@given(st.integers(0, 2000), st.integers(0, 2000))
def test_each_turn_has_a_number_of_its_own(one: int, other: int) -> None:
    number = Turn(one, other).number
    edge = max(one, other)
    assert edge**2 <= number < (edge + 1) ** 2
    assert (number == Turn(other, one).number) == (one == other)


def test_other_columns_are_refused() -> None:
    with pytest.raises(UserError, match=r"^replay.ids: found 'x' \(double\), allowed: columns of type string or int64"):
        Ids.of(pa.table({"x": [1.5]}), ["x"])
    with pytest.raises(UserError, match=r"^replay.ids: found 'y' \(null\)"):
        Ids.of(pa.table({"x": [1.5]}), ["y"])


def test_a_feed_has_other_ids_in_each_loop_and_the_oracle_has_the_same() -> None:
    replay, marking = Replay(stream_of([100, 110, 105])), Marking(("carrier", "flight"), 4)
    feed = Feed(replay, schedule(1e9, 10, replay.loop), 10**15, 0, 1, marking)
    rows = [row for _ in range(3) for row in feed.next_batch(2)[0].to_pylist()]
    assert [(row["carrier"], row["flight"]) for row in rows] == [
        ("C0~4", 200), ("C1~4", 201), ("C2~4", 202), ("C0~4.1", 210), ("C1~4.1", 211),
    ]  # fmt: skip
    offered = offered_rows(replay.stream, [[5]], marking).select(["carrier", "flight"]).to_pylist()
    assert offered == [{name: row[name] for name in ("carrier", "flight")} for row in rows]
