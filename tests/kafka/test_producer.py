"""Records as a producer writes them, on a real broker: the event's time and key, and the partition of that key."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.bench.driver.client import Connection
from streamgauge.bench.driver.system import Endpoint
from streamgauge.bench.publish.publisher import BrokerClock, LinkFigures, Publisher, Task
from streamgauge.streams.kafka.clients import Access, Topics
from streamgauge.streams.kafka.partitioner import partitions_of
from streamgauge.streams.kafka.records import Form
from tests.command import Call, run
from tests.driver.conftest import Serve
from tests.kafka.test_broker import records
from tests.kafka.topics import out_of_order

DAY = 86_400_000 * 10**6
Dated = Callable[[int], str]


@pytest.fixture
def dated(access: Access) -> Iterator[Dated]:
    """dated(partitions) -> name of a new topic whose records bear the events' times; one for its clock is beside it."""
    topics, name = Topics(access), f"dated-{time.time_ns()}"

    def make(partitions: int) -> str:
        topics.make(name, partitions, by_event=True)
        topics.make(f"{name}-clock", 1)
        return name

    yield make
    topics.remove([name, f"{name}-clock"])


def published(
    endpoint: Endpoint, access: Access, topic: str, form: Form, work: Path
) -> tuple[LinkFigures, list[list[Any]]]:
    """Publishes a trial of 400 rows to that topic; returns the records of each partition, too."""
    stop = threading.Event()
    task = Task("a", (endpoint,), access.bootstrap, {}, topic, form, str(work), clock=f"{topic}-clock")
    with Connection(endpoint) as control:
        control.open("a", 2000, 0.2)
        publisher = Publisher(task, stop)
        thread = threading.Thread(target=publisher.run, daemon=True)
        thread.start()
        control.start()
        until = time.monotonic() + 20
        while publisher.finished < endpoint.partitions and time.monotonic() < until:
            time.sleep(0.02)
    taken = [records(access, topic, number, rows) for number, rows in enumerate(publisher.figures()["published"])]
    stop.set()
    thread.join()
    return publisher.figures(), taken


def times(taken: list[Any]) -> list[tuple[int, int]]:
    return [record.timestamp() for record in taken]


@pytest.mark.parametrize("first", [0, time.time_ns()], ids=["since 1970", "up to a year ahead"])
def test_a_record_bears_its_event_s_time_and_the_broker_s_clock_is_known(
    first: int, serve: Serve, access: Access, dated: Dated, tmp_path: Path
) -> None:
    events = [first + at for at in (DAY + 1_999_999, 10**6, 3 * DAY, 2 * DAY + 1)]
    topic = dated(1)
    figures, [taken] = published(serve(events, partitions=1), access, topic, Form("json", by_event=True), tmp_path)
    assert len(taken) == 401
    stamps = [stamp for _, stamp in times(taken)]
    assert stamps[:4] == [at // 10**6 for at in events]
    assert {kind for kind, _ in times(taken)} == {1}, "CreateTime"
    assert stamps[-1] > stamps[-2] + 86_400_000, "the sentinel lies a day behind"
    assert figures["slip"]["count"] > 400 / 8 - 1
    offset_ns, error_ns = figures["clock_offset_ns"] or (0, 0)
    assert 0 < error_ns < 5 * 10**9
    assert abs(offset_ns) <= error_ns, "this host's broker has our clock"


def test_a_clock_that_drifts_is_followed_by_the_best_reading_of_each_minute() -> None:
    clock = BrokerClock()
    readings = [(0, 5, 9), (1, 7, 2), (30, 8, 4), (62, 20, 3), (90, 25, 8), (124, 40, 9)]  # at, offset, error
    offsets = [clock.read(offset, error, at * 10**9) for at, offset, error in readings]
    assert offsets == [(5, 9), (7, 2), (7, 2), (7, 2), (7, 2), (25, 8)]


@pytest.mark.parametrize("key", ["carrier", "flight"])
def test_a_record_has_its_column_as_key_and_lies_where_a_java_client_puts_it(
    key: str, serve: Serve, access: Access, dated: Dated, tmp_path: Path
) -> None:
    endpoint = serve([DAY + i * 10**6 for i in range(100)], partitions=5, key=key)
    given = {"carrier": None, "flight": 7} if key == "carrier" else {}
    form = Form("json", by_event=True, key=key, sentinel=given)
    figures, taken = published(endpoint, access, dated(5), form, tmp_path)
    assert sum(figures["published"]) == 400 + 5
    values = [[json.loads(record.value()) for record in part] for part in taken]
    assert sorted(row["event_time"] for part in values for row in part[:-1]) == [
        DAY + 100 * 10**6 * loop + 10**6 * i for loop in range(4) for i in range(100)
    ]
    for number, (part, rows) in enumerate(zip(taken, values, strict=True)):
        texts = [record.key() for record in part]
        dealt = [text for text in texts if text is not None]  # the sentinel of one case has no key
        assert set(partitions_of(pa.array(dealt, pa.binary()), 5).tolist()) <= {number}
        assert texts[:-1] == [str(row[key]).encode() for row in rows[:-1]]
        assert [row["event_time"] for row in rows] == sorted(row["event_time"] for row in rows)
        assert texts[-1] not in set(texts[:-1]), "the sentinel's key is its own"
        wanted = {"carrier": None, "flight": 7} if given else {"carrier": "sentinel", "flight": int(texts[-1])}
        assert {name: rows[-1][name] for name in ("carrier", "flight")} == wanted


def test_a_published_stream_is_read_back_with_the_same_events_and_disorder_in_each_partition(
    serve: Serve, access: Access, dated: Dated, tmp_path: Path
) -> None:
    draw, topic = Random(3), dated(3)
    arrivals = sorted((10**6 * (at + (draw.randrange(60) if at % 4 == 0 else 0)), 10**6 * at) for at in range(1, 101))
    endpoint = serve([at for _, at in arrivals], ingestion=[at for at, _ in arrivals], partitions=3, key="flight")
    figures, _ = published(endpoint, access, topic, Form("json", by_event=True, key="flight"), tmp_path)
    ends = ",".join(f"{number}:{rows - 1}" for number, rows in enumerate(figures["published"]))  # before the sentinels
    offered = [pa.ipc.open_stream(str(tmp_path / f"events-{number}.arrow")).read_all()[:-1] for number in range(3)]
    late = [out_of_order(rows["event_time"].to_pylist()) for rows in offered]
    wanted = {str(number): (rows.num_rows, late[number]) for number, rows in enumerate(offered)}
    assert sum(late) > 20
    source = [f"kafka://{access.bootstrap}/{topic}", "--until", ends, "--json"]
    for time_of in (["kafka.timestamp"], ["event_time", "--unit", "ns"]):
        found = run(Call(["analyze", *source, "--time", *time_of])).json
        assert {one["part"]: (one["events"], one["out_of_order"]) for one in found["by_part"]["parts"]} == wanted
        assert found["topic"]["times"] == "CreateTime"
    for number, rows in enumerate(offered):
        taken = records(access, topic, number, rows.num_rows)
        times_ms = [at // 10**6 for at in rows["event_time"].to_pylist()]
        pairs = [(int(record.key()), record.timestamp()[1]) for record in taken]
        assert pairs == [*zip(rows["flight"].to_pylist(), times_ms, strict=True)]
