"""A workload whose sums leave 64 bits is refused before its trial; plain Python adds up without a limit."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.base.errors import UserError
from streamgauge.base.schemas import NEXMARK
from streamgauge.bench.driver.replay import EVENT_TS
from streamgauge.bench.engines.job.settings import JobSettings
from streamgauge.bench.measure.overflow import refuse_before_1970, refuse_overflow
from streamgauge.bench.oracle.duck import ask
from streamgauge.bench.oracle.sums import LARGEST, extremes, sums, whole
from streamgauge.bench.workloads import Spec
from streamgauge.catalog.artifacts import Artifact
from streamgauge.config import Workload
from tests import manifests

S = 1_000_000
TOP = 2**63 - 1


def rows(events: Sequence[tuple[int, str, float]], kind: pa.DataType) -> pa.Table:
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
    return written(place, table, {"key": "string", "vol": kind})


def written(place: Path, table: pa.Table, columns: dict[str, str]) -> Artifact:
    table = table.drop_columns(["event_ts"]).append_column("ingestion_time", table["event_time"])
    pq.write_table(table, place / "part.parquet")
    return Artifact("stream", "x", place, manifests.of_stream(columns=columns, files=["part.parquet"]))


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
            "workloads.w.value: found sums of vol up to 5.53402e+19 in one session, allowed: up to 9.22337e+18 (64 "
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


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.sampled_from([TOP // 3, TOP // 2, -TOP // 2, 1])), min_size=2, max_size=6
    ),
    st.integers(1, 12),
    st.sampled_from(["windowed_aggregation", "sessions"]),
)
def test_a_window_that_holds_two_loops_of_the_stream_is_refused_if_their_sum_leaves_64_bits(
    events: list[tuple[int, int]], window_s: int, query: str
) -> None:
    """Sums by plain Python over the loops that a window may touch, or over as many as are looked at for a session."""
    seconds = sorted(second for second, _ in events)
    span = seconds[-1] - seconds[0]
    table = rows([(second, "k", value) for second, (_, value) in zip(seconds, events, strict=True)], pa.int64())
    shift = span * 10**9 + max(1, span * 10**9 // (len(events) - 1))
    loops = min(8, -(-window_s * 10**9 // shift) + 1)
    placed = sorted(
        (second * 10**9 + loop * shift, value)
        for loop in range(loops) for second, (_, value) in zip(seconds, events, strict=True)
    )  # fmt: skip
    sides: dict[tuple[int, bool], int] = defaultdict(int)
    session, before = 0, placed[0][0]
    for at, value in placed:
        session += at // 1000 - before // 1000 > window_s * S
        before = at
        sides[session if query == "sessions" else at // (window_s * 10**9), value > 0] += abs(value)
    workload = Workload.model_validate(
        {"name": "w", "query": query, "key": "key", "value": "vol", "window": f"{window_s}s"}
    )
    with TemporaryDirectory() as place:
        made = written(Path(place), table, {"key": "string", "vol": "int64"})
        with pytest.raises(UserError) if max(sides.values()) > TOP else nullcontext():
            refuse_overflow([made], workload)


@pytest.mark.parametrize(("query", "highest"), [("q1", TOP // 89), ("q14", TOP // 89), ("q6", TOP // 10)])
def test_prices_whose_multiples_leave_64_bits_are_refused(tmp_path: Path, query: str, highest: int) -> None:
    workload = Workload.model_validate({"name": "w", "query": f"nexmark.{query}"})
    for price in (highest, highest + 1):
        table = rows([(0, "k", 1)], pa.int64()).append_column("price", pa.array([price]))
        made = written(tmp_path, table, dict(NEXMARK))
        with (
            pytest.raises(UserError, match=r"found a price of .*, allowed: up to ")
            if price > highest
            else nullcontext()
        ):
            refuse_overflow([made], workload)


@pytest.mark.parametrize("query", ["q4", "q6", "q17"])
def test_of_sums_beyond_64_bits_the_oracle_says_one_line_or_the_right_value(query: str) -> None:
    """Two auctions, each won at the highest price; both bids on a day."""
    count, at = 6, [0, 1, 2, 3, 4, 5]
    bids = pa.table({
        "seq": range(count), "event_ts": pa.array([one * S for one in at]).cast(EVENT_TS),
        "kind": ["auction", "auction", "bid", "bid", "bid", "bid"], "id": [1, 2, None, None, None, None],
        "seller": [7, 7, None, None, None, None], "category": [3, 3, None, None, None, None],
        "expires": [50 * S, 60 * S, None, None, None, None], "auction": [None, None, 1, 1, 2, 2],
        "bidder": [None, None, 1, 2, 1, 2], "price": [None, None, TOP, TOP - 8, TOP, TOP - 8],
    })  # fmt: skip
    if query == "q6":
        assert ask(Spec("nexmark.q6"), (bids,))["average"].to_pylist() == [float(TOP), float(TOP)]
        return
    with pytest.raises(ValueError, match=f"^nexmark.{query}: Conversion Error: .*INT128.*INT64") as told:
        ask(Spec(f"nexmark.{query}"), (bids,))
    assert "\n" not in str(told.value)


def test_large_numbers_in_windows_of_their_own_are_taken(tmp_path: Path) -> None:
    asked = {"name": "w", "query": "windowed_aggregation", "key": "key", "value": "vol", "window": "1s"}
    refuse_overflow([stream(tmp_path, [LARGEST, LARGEST, -LARGEST], "int64")], Workload.model_validate(asked))


def test_a_record_s_time_cannot_be_before_1970(tmp_path: Path) -> None:
    pq.write_table(rows([(2, "a", 1), (0, "a", 1)], pa.int64()), tmp_path / "part.parquet")
    stream = Artifact("stream", "", tmp_path, manifests.of_stream(files=["part.parquet"]))
    about = {"name": "mine", "engine": "job", "bootstrap": "127.0.0.1:9092", "command": ["job"]}
    refuse_before_1970([stream], JobSettings.model_validate(about))
    with pytest.raises(UserError, match=r"^systems.mine.timestamp: .* an event is of 1970-01-01T00:00:00Z"):
        refuse_before_1970([stream], JobSettings.model_validate(about | {"timestamp": "event"}))
