"""A workload whose sums leave 64 bits is refused before its trial; plain Python adds up without a limit."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.base.errors import UserError
from streamgauge.catalog.artifacts import Artifact
from streamgauge.config import Workload
from streamgauge.driver.replay import EVENT_TS
from streamgauge.measure.overflow import refuse_overflow
from streamgauge.oracle.sums import LARGEST, extremes, sums, whole
from streamgauge.workloads import Spec

S = 1_000_000
TOP = 2**63 - 1


def rows(events: list[tuple[int, str, float]], kind: pa.DataType) -> pa.Table:
    """events: second, key, value."""
    return pa.table(
        {
            "seq": range(len(events)),
            "event_time": pa.array([at * 10**9 for at, *_ in events], pa.int64()),
            "event_ts": pa.array([at * S for at, *_ in events], pa.int64()).cast(EVENT_TS),
            "key": [key for _, key, _ in events],
            "vol": pa.array([value for *_, value in events], kind),
        }
    )


def reach(events: list[tuple[int, str, int]], window_s: int) -> int:
    """The largest magnitude of a partial sum, in the worst order, by key and window."""
    sides: dict[tuple[str, int, bool], int] = defaultdict(int)
    for at, key, value in events:
        sides[key, at // window_s, value > 0] += abs(value)
    return max(sides.values(), default=0)


EVENTS = st.lists(
    st.tuples(st.integers(-30, 30), st.sampled_from("ab"), st.sampled_from([TOP, -TOP, TOP // 2, 1, -1, 0])),
    max_size=12,
)


@settings(max_examples=15, deadline=None)
@given(EVENTS)
def test_the_reach_of_sums_is_that_of_plain_python(events: list[tuple[int, str, int]]) -> None:
    table = rows(events, pa.int64())
    spec = Spec("windowed_aggregation", "key", "vol", window_us=10 * S)
    assert extremes(table, spec) == reach(events, 10)
    assert whole([table, table], spec) == 2 * sum(abs(value) for *_, value in events)
    one_session = [(0, key, value) for _, key, value in events]  # the gap is longer than the stream
    assert extremes(table, Spec("sessions", "key", "vol", window_us=100 * S)) == reach(one_session, 1)


def test_a_float_that_fits_no_bigint_is_no_number() -> None:
    table = rows([(0, "a", 1e300), (1, "a", math.nan), (2, "a", 5.0)], pa.float64())
    assert extremes(table, Spec("windowed_aggregation", "key", "vol", window_us=10 * S)) == 5_000_000


def test_only_sums_of_a_workload_s_column_can_overflow() -> None:
    asked = ["windowed_aggregation", "sessions", "chained_windows", "top_n", "passthrough", "windowed_join"]
    assert [query for query in asked if sums(Spec(query, "key", "vol"))] == asked[:3]


def stream(place: Path, values: list[float], kind: str) -> Artifact:
    table = rows([(n, "k", value) for n, value in enumerate(values)], pa.float64() if kind == "float64" else pa.int64())
    pq.write_table(table.drop_columns(["event_ts"]), place / "part.parquet")
    manifest = {"columns": {"key": "string", "vol": kind}, "tick": "ns", "files": ["part.parquet"]}
    return Artifact("stream", "x", place, manifest)


@pytest.mark.parametrize(
    ("query", "values", "kind", "message"),
    [
        (
            "windowed_aggregation", [1e12] * 12, "float64",
            "workloads.w.value: found sums of vol up to 1e+13 in one window, allowed: up to 9.22337e+12 (64 bits, as "
            "floats are summed in millionths); choose a shorter window, or a larger unit for the column",
        ),
        (
            "sessions", [LARGEST, 1], "int64",
            "workloads.w.value: found sums of vol up to 9.22337e+18 in one session, allowed: up to 9.22337e+18 (64 "
            "bits); choose a shorter window, or a larger unit for the column",
        ),
        ("chained_windows", [-LARGEST] * 30, "int64", "workloads.w.value: found sums of vol up to 1.84467e+19 in one"),
    ],
)  # fmt: skip
def test_sums_beyond_64_bits_name_the_column_and_the_limit(
    tmp_path: Path, query: str, values: list[float], kind: str, message: str
) -> None:
    asked = {"name": "w", "query": query, "key": "key", "value": "vol", "window": "10s"}
    with pytest.raises(UserError) as told:
        refuse_overflow([stream(tmp_path, values, kind)], Workload.model_validate(asked))
    assert str(told.value).startswith(message)


def test_large_numbers_in_windows_of_their_own_are_taken(tmp_path: Path) -> None:
    asked = {"name": "w", "query": "windowed_aggregation", "key": "key", "value": "vol", "window": "1s"}
    refuse_overflow([stream(tmp_path, [LARGEST, LARGEST, -LARGEST], "int64")], Workload.model_validate(asked))
