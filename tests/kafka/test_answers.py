"""Answers that change, and answers without what a job's stream time has overtaken: whole answers by plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.base.errors import UserError
from streamgauge.bench.engines.job.job_system import JobSystem
from streamgauge.bench.engines.job.settings import JobSettings
from streamgauge.bench.oracle.own_sql import PARTITION
from streamgauge.bench.publish.answers import Output, Topic, finite, without_lost
from streamgauge.bench.workloads import Spec
from streamgauge.records.rules import Rules
from streamgauge.streams.kafka.clients import Access
from tests.kafka.test_settings import WALLS

US = 1000  # µs of a millisecond


def rules(window_ms: int, grace_ms: int, slide_ms: int | None = None, query: str = "windowed_aggregation") -> Rules:
    """Rules that a job of that grace declares for a workload of that window."""
    answer = {"sql": f"select seq, {WALLS}", "grace": f"{grace_ms}ms"}
    about = {"name": "mine", "engine": "job", "bootstrap": "127.0.0.1:9092", "command": ["job"], "answer": answer}
    slide_us = None if slide_ms is None else slide_ms * US
    spec = Spec(query, window_us=window_ms * US, slide_us=slide_us)
    return JobSystem(JobSettings.model_validate(about), Path()).rules(spec)


def in_time(events: list[tuple[int, int]], window_ms: int, grace_ms: int) -> list[tuple[int, int]]:
    """The events (partition, µs) that windows of Kafka Streams take: its clock and its windows have milliseconds."""
    stream_time: dict[int, int] = {}
    taken = []
    for partition, at_us in events:
        at = at_us // US
        stream_time[partition] = max(stream_time.get(partition, at), at)
        end = at // window_ms * window_ms + window_ms
        if end > stream_time[partition] - grace_ms:
            taken.append((partition, at_us))
    return taken


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60_000)), max_size=30), st.integers(1, 9), st.integers(0, 20)
)
def test_a_partition_s_own_stream_time_decides_which_events_a_window_takes(
    events: list[tuple[int, int]], window_ms: int, grace_ms: int
) -> None:
    rows = pa.table(
        {
            PARTITION: pa.array([partition for partition, _ in events], pa.int64()),
            "event_ts": pa.array([at for _, at in events], pa.timestamp("us", "UTC")),
        }
    )
    kept = without_lost(rows, rules(window_ms, grace_ms))
    found = zip(kept[PARTITION].to_pylist(), kept["event_ts"].cast(pa.int64()).to_pylist(), strict=True)
    assert list(found) == in_time(events, window_ms, grace_ms)


def test_overlapping_windows_and_sessions_have_no_such_rule() -> None:
    for query, slide_ms in (("windowed_aggregation", 5), ("custom_windows", None), ("sessions", None)):
        with pytest.raises(UserError, match=r"^systems.mine.answer.grace: found a workload whose windows overlap"):
            rules(10, 5, slide_ms=slide_ms, query=query)


def test_a_record_without_a_key_moves_no_stream_time() -> None:
    seconds = pa.array([1_000_000, 60_000_000, 2_000_000], pa.timestamp("us", "UTC"))
    rows = pa.table({PARTITION: pa.array([0, 0, 0], pa.int64()), "event_ts": seconds, "k": ["a", None, "a"]})
    assert [without_lost(rows, rules(10_000, 1_000), key).num_rows for key in (None, "k")] == [2, 3]


def test_rows_have_null_where_json_has_no_number() -> None:
    rows = pa.table({"v": pa.array([1.5, math.nan, None, math.inf]), "n": [1, 2, 3, 4]})
    assert finite(rows).to_pydict() == {"v": [1.5, None, None, None], "n": [1, 2, 3, 4]}


@given(st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.none() | st.binary(min_size=1))))
def test_the_last_record_of_a_key_is_its_answer(records: list[tuple[bytes, bytes | None]]) -> None:
    topic = Topic([value for _, value in records], np.arange(len(records)), [key for key, _ in records])
    last = topic.last_of_each_key()
    wanted = {key: (at, value) for at, (key, value) in enumerate(records)}
    kept = sorted((at, key, value) for key, (at, value) in wanted.items() if value is not None)
    assert [*zip(last.appended_ns.tolist(), last.keys, last.values, strict=True)] == kept


def test_answers_that_change_need_keys_and_tombstones_remove_them(access: Access, topic: Callable[[int], str]) -> None:
    name, producer = topic(2), Producer(access.settings())
    for key, value in (("a", "1"), ("b", "2"), ("a", "3"), ("b", None), ("c", "4")):
        producer.produce(name, value, key)
    producer.flush(10)
    output = Output(access, name, 2)
    last = output.read().last_of_each_key()
    assert sorted(zip(last.keys, last.values, strict=True)) == [(b"a", b"3"), (b"c", b"4")]
    producer.produce(name, "no key")
    producer.flush(10)
    with pytest.raises(UserError, match=r"^answer.mode: found upsert, but an answer has no key: 'no key'; allowed"):
        output.read().last_of_each_key()
    output.close()
