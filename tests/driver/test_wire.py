"""The wire over a real socket: what must fail does, offsets in mid-batch, reading again, TLS."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver.client import Connection, RefusedError, WireError
from streamgauge.bench.driver.offer import Driver
from streamgauge.bench.driver.requests import Observe, Open
from streamgauge.bench.driver.server import Server
from streamgauge.bench.driver.serving import Serving
from streamgauge.bench.driver.system import Endpoint
from tests.driver.conftest import Certificate, Serve, stream_of

TIMES = [i * 1000 for i in range(100)]
NONE = Histogram().to_dict()
BODY = {"rows": 0, "event_latency": NONE, "processing_latency": NONE}


def started(endpoint: Endpoint, rate: float = 10_000, seconds: float = 0.05, beyond_us: int = 0) -> Connection:
    """A trial that offered all its rows; those and a sentinel are in the queues."""
    connection = Connection(endpoint)
    connection.open("a", rate, seconds, beyond_us=beyond_us)
    connection.start(time.time_ns())
    for _ in range(200):
        if connection.latest().finished:
            return connection
        time.sleep(0.01)
    raise AssertionError("the trial did not finish")


def sequence(connection: Connection, partition: int, start: int, end: int | None = None) -> list[int]:
    return [n for batch in connection.read(partition, start, end) for n in batch.column("seq").to_pylist()]


def test_a_trial_offers_rate_times_seconds_and_one_sentinel_per_queue(serve: Serve) -> None:
    with started(serve(TIMES, partitions=2)) as connection:
        assert connection.latest().rows == (251, 251)
        assert sequence(connection, 0, 0, 251) == [*range(0, 500, 2), -1]
        assert sequence(connection, 1, 0, 251) == [*range(1, 500, 2), -1]


def test_rows_that_fall_due_while_the_driver_oversleeps_are_offered(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = Driver._fill

    def overslept(self: Driver, *args: Any) -> int:
        late = fill(self, *args)
        time.sleep(0.5)  # longer than rows are prepared ahead
        return late

    monkeypatch.setattr(Driver, "_fill", overslept)
    with started(serve(TIMES), rate=2000, seconds=1) as connection:
        assert connection.latest().rows == (2001,)


def test_a_closed_loop_offers_rows_in_each_queue(serve: Serve) -> None:
    with Connection(serve(TIMES, partitions=2)) as connection:
        connection.open("a", 1e8, 60, hold=100)
        connection.start(time.time_ns())
        for done in range(0, 1000, 50):
            until = time.monotonic() + 5
            while connection.latest().rows != (done + 50, done + 50) and time.monotonic() < until:
                time.sleep(0.005)
            assert connection.latest().rows == (done + 50, done + 50)
            connection.commit({0: done + 50, 1: done + 50})


@pytest.mark.parametrize(("asked", "far"), [(0, 86_400), (3600 * 10**6, 86_400), (604_800 * 10**6, 604_800)])
def test_the_sentinel_is_a_day_away_or_as_far_as_the_trial_asks(serve: Serve, asked: int, far: int) -> None:
    with started(serve(TIMES), rate=1000, seconds=0.05, beyond_us=asked) as connection:
        times = [t for batch in connection.read(0, 0) for t in batch.column("event_time").to_pylist()]
        assert times == [*TIMES[:50], TIMES[-1] + far * 10**9]


def test_reads_begin_and_end_in_mid_batch_and_repeat_until_committed(serve: Serve) -> None:
    with started(serve(TIMES)) as connection:
        assert sequence(connection, 0, 7, 13) == [7, 8, 9, 10, 11, 12]
        assert sequence(connection, 0, 7, 13) == [7, 8, 9, 10, 11, 12]
        assert sequence(connection, 0, 499) == [499, -1]
        connection.commit({0: 10})
        assert sequence(connection, 0, 10, 13) == [10, 11, 12]
        with pytest.raises(
            RefusedError, match=r"found rows 9 to 13, allowed: from 10 \(committed\) to 501 \(offered\)"
        ):
            sequence(connection, 0, 9, 13)
        with pytest.raises(RefusedError, match="found 9, allowed: from 10"):
            connection.commit({0: 9})
        assert sequence(connection, 0, 12, 14) == [12, 13]  # a refusal does not end the connection


def test_a_range_of_more_batches_than_one_answer_holds_arrives_whole(serve: Serve) -> None:
    with started(serve(TIMES[:10]), rate=2000, seconds=0.5) as connection:  # a batch ends with its loop of 10
        assert sequence(connection, 0, 3, 1001) == [*range(3, 1000), -1]
        assert len(sequence(connection, 0, 3)) == 16 * 10 - 3


def test_a_read_waits_for_the_next_row_and_not_longer(serve: Serve) -> None:
    with Connection(serve(TIMES)) as connection:
        connection.open("a", 1, 30)  # a row each second
        begin = connection.start(time.time_ns())
        assert [b.num_rows for b in connection.read(0, 0, wait_s=5)] == [1]
        batches = list(connection.read(0, 1, wait_s=5))
        assert time.time_ns() - begin >= 1_000_000_000
        assert sum(b.num_rows for b in batches) == 1
        assert batches[0].column("offered_wall").to_pylist() == [begin + 1_000_000_000]
        assert list(connection.read(0, 2, wait_s=0.01)) == []


def test_nothing_is_told_before_hello_or_with_a_wrong_token_or_attempt(serve: Serve) -> None:
    endpoint = serve(TIMES, token="secret")
    with socket.create_connection((endpoint.host, endpoint.port)) as raw:
        raw.sendall(b'{"verb":"latest"}\n')
        answer = raw.makefile().read()
    assert json.loads(answer) == {"ok": False, "error": "the first request must be hello with version 1"}
    with pytest.raises(RefusedError, match="wrong token"):
        Connection(replace(endpoint, token="Secret"))
    with Connection(endpoint) as controller:
        controller.open("a", 10, 1)
        with pytest.raises(RefusedError, match="attempt: found 'b', allowed: 'a'"):
            Connection(endpoint, "b")


def test_opening_a_trial_closes_the_connections_of_the_one_before(serve: Serve) -> None:
    endpoint = serve(TIMES)
    with Connection(endpoint) as controller:
        controller.open("a", 10, 1)
        old = Connection(endpoint, "a")
        controller.open("b", 10, 1)
        with pytest.raises(WireError):
            old.latest()
        assert old.closed
        with pytest.raises(RefusedError, match="attempt"):
            controller.report("a", 0, BODY)


def test_a_repeated_epoch_replaces(serve: Serve) -> None:
    with started(serve(TIMES)) as connection:
        for epoch, rows in ((0, 5), (1, 7), (0, 6)):
            connection.report("a", epoch, BODY | {"rows": rows})
        reports = connection.observe()["reports"]
    assert [(r["epoch"], r["body"]["rows"]) for r in reports] == [(0, 6), (1, 7)]


def test_reports_come_in_pages_as_those_of_hours_are_longer_than_a_line(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamgauge.bench.driver.attempt.PAGE", 2)
    with started(serve(TIMES)) as connection:
        for epoch in (4, 0, 2, 1, 3):
            connection.report("a", epoch, BODY | {"rows": epoch})
        observed = connection.observe()
    assert ([r["epoch"] for r in observed["reports"]], observed["more"]) == ([0, 1, 2, 3, 4], False)


@pytest.mark.parametrize(
    ("verb", "fields", "error"),
    [
        ("fly", {}, "verb: found 'fly', allowed: hello, latest, read"),
        ("read", {"partition": 0}, "from: found nothing, allowed: a whole number from 0 on"),
        ("read", {"partition": 3, "from": 0, "to": 1}, "partition: found 3, allowed: 0 to 0"),
        ("commit", {"offsets": [1]}, "offsets: found [1]"),
        ("commit", {"offsets": {"0": 1.5}}, "offsets: found 1.5, allowed: an object from partition to row"),
        ("open", {"attempt": "b", "rate": float("nan"), "seconds": 1}, "rate: found nan"),
        ("open", {"attempt": "b", "rate": 0, "seconds": 1}, "rate: found 0"),
        ("start", {"start_wall_ns": 5}, "check that the hosts' clocks are synchronised"),
    ],
)
def test_bad_requests_are_refused_in_one_line(serve: Serve, verb: str, fields: dict[str, object], error: str) -> None:
    with started(serve(TIMES)) as connection:
        with pytest.raises(RefusedError) as refused:
            connection._ask(verb, **fields)
        assert error in str(refused.value)
        assert "\n" not in str(refused.value)
        assert connection.latest().finished


def test_queues_that_overflow_end_the_trial_without_a_sentinel(serve: Serve) -> None:
    with Connection(serve(TIMES, queue_seconds=0.01)) as connection:  # the least capacity is 1000 rows
        connection.open("a", 50_000, 10)
        connection.start(time.time_ns())
        until = time.monotonic() + 5
        while not connection.latest().finished and time.monotonic() < until:
            time.sleep(0.01)
        status = connection.status()
        assert (status["state"], status["overflow"], status["finished"]) == ("overflow", True, True)
        offered = status["offered"][0]
        assert 999 <= offered < 50_000
        assert sequence(connection, 0, 0, offered) == list(range(offered))


def faulty(answer: Callable[[socket.socket], None]) -> Endpoint:
    """A driver that greets properly and then answers so."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        reader = connection.makefile("rb")
        reader.readline()
        schema = stream_of(TIMES).schema.serialize().to_pybytes()
        hello = {"ok": True, "version": 1, "partitions": 1, "attempt": "", "schema": base64.b64encode(schema).decode()}
        connection.sendall(json.dumps(hello).encode() + b"\n")
        reader.readline()
        answer(connection)
        reader.close()
        connection.close()
        listener.close()

    threading.Thread(target=serve, daemon=True).start()
    return Endpoint("127.0.0.1", listener.getsockname()[1])


def ipc(count: int) -> bytes:
    sink = pa.BufferOutputStream()
    schema = pa.schema([("seq", pa.int64())])
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(pa.record_batch([pa.array(range(count), pa.int64())], schema=schema))
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(b'{"ok":true}\n' + ipc(5), "before the end of its answer", id="no END"),
        pytest.param(b'{"ok":true}\n' + ipc(5)[:-8], "before the end of its answer", id="closed between batches"),
        pytest.param(b'{"ok":true}\n' + ipc(5)[:-30], "driver", id="closed within a batch"),
        pytest.param(
            b'{"ok":true}\n' + ipc(5) + b'{"end":true,"rows":6}\n',
            "received 5 rows, but END reports 6",
            id="rows missing",
        ),
        pytest.param(b'{"ok":true}\n' + ipc(5) + b'{"end":true,"ro', "before the end of its answer", id="torn END"),
        pytest.param(b'{"ok":true}\n' + ipc(0) + b'{"end":true,"rows":0}\n', "no rows for 0 to 5", id="nothing of it"),
        pytest.param(
            b'{"ok":true}\n' + ipc(5) + b'{"rows":5}\n',
            "received 5 rows, but no END followed",
            id="another line than END",
        ),
        pytest.param(b"", "before the end of its answer", id="no answer"),
    ],
)
def test_an_answer_without_its_end_is_a_failure_never_the_end_of_the_data(answer: bytes, error: str) -> None:
    connection = Connection(faulty(lambda raw: raw.sendall(answer)))
    with pytest.raises(WireError, match=error):
        list(connection.read(0, 0, 5))
    assert connection.closed


def test_an_iterator_left_early_closes_its_connection(serve: Serve) -> None:
    connection = started(serve(TIMES[:10]))
    rows = connection.read(0, 0, 100)
    next(iter(rows))
    assert isinstance(rows, Generator)
    rows.close()
    assert connection.closed


def test_a_silent_driver_is_a_failure_after_the_timeout() -> None:
    endpoint = faulty(lambda _: time.sleep(2))
    with pytest.raises(WireError, match="timed out"):
        Connection(endpoint, timeout_s=0.2).latest()


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(WireError, match="refused"):
        Connection(Endpoint("127.0.0.1", port))


def test_a_port_in_use_is_one_line(serve: Serve) -> None:
    endpoint = serve(TIMES)
    for port in (endpoint.port, 70000):
        with pytest.raises(
            UserError, match=rf"127.0.0.1:{port}: cannot listen on this address: .*; choose another port"
        ):
            Server(Driver(stream_of(TIMES), Serving()), "127.0.0.1", port)


def test_tls_speaks_to_whoever_trusts_the_certificate_and_to_nobody_else(
    serve: Serve, certificate: Certificate
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    endpoint = serve(TIMES, token="secret", context=context)
    with started(replace(endpoint, cafile=certificate[0])) as connection:
        assert sequence(connection, 0, 0, 501) == [*range(500), -1]
    with pytest.raises(WireError):
        Connection(endpoint, timeout_s=2)  # plain text


@pytest.mark.parametrize("encrypted", [False, True])
def test_connections_of_an_older_attempt_are_closed(serve: Serve, certificate: Certificate, encrypted: bool) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    endpoint = serve(TIMES, context=context if encrypted else None)
    endpoint = replace(endpoint, cafile=certificate[0] if encrypted else None)
    with Connection(endpoint) as controller:
        controller.open("one", 1e6, 1)
        older = Connection(endpoint, attempt="one")
        older.latest()
        controller.open("two", 1e6, 1)
        with pytest.raises(WireError):
            older.latest()
        older.close()


def test_the_clock_offset_of_one_host_is_within_the_round_trip(serve: Serve) -> None:
    with started(serve(TIMES)) as connection:
        offset, half = connection.clock_offset()
    assert abs(offset) <= half + 1_000_000


def test_a_trial_is_observed_while_its_rows_fall_due() -> None:
    driver = Driver(stream_of([0, 1, 2]), Serving())
    driver.answer(Open(attempt="a", rate=1, seconds=1))
    attempt, over = driver._current(), threading.Event()

    def fall_due() -> None:
        late = np.arange(0, 10**9, 10**5, dtype=np.int64)
        while not over.is_set():
            driver._slipped(attempt, late)

    falling = threading.Thread(target=fall_due)
    falling.start()
    try:
        for _ in range(200):
            seen: Mapping[str, Any] = driver.answer(Observe())
            Histogram.from_dict(seen["slip"])  # raises where it is half counted
    finally:
        over.set()
        falling.join()
