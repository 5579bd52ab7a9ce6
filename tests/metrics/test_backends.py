"""The pipeline runs on whatever a backend does, memory is bounded, and values are right when the backend is back."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from streamgauge import metrics
from streamgauge.metrics.pipeline import Pipeline
from streamgauge.metrics.pusher import Pusher
from streamgauge.metrics.registry import Metric
from streamgauge.metrics.snapshot import Snapshot
from tests.metrics.backend import Backend, wait_until
from tests.told import known

BUFFER = 5


def start(url: str, **more: Any) -> Pipeline:
    sink = {"type": "http", "url": url, "timeout": "3s"}
    return metrics.start(name="p", sinks=[sink], period="100ms", buffer=BUFFER, **more)


def rows(body: dict[str, Any]) -> int:
    [counter] = body["counters"]
    assert counter["attempted"] == counter["committed"]
    return int(counter["committed"])


def work(pipeline: Pipeline, pushes: int) -> int:
    """Counts on while so many pushes fall due; returns the total."""
    for _ in range(pushes * 5):
        metrics.counter("n", "rows").inc(3)
        time.sleep(0.02)
    for _ in range(pushes):
        pipeline.push()
    [metric] = pipeline.query()
    return int(metric.attempted["value"])


@pytest.mark.parametrize("trouble", ["down", "slow", "500", "torn"])
def test_a_backend_in_trouble_changes_nothing_and_gets_right_values_when_it_is_back(
    trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    backend = Backend()
    with start(backend.url) as pipeline:
        [sender] = known(pipeline._pusher)._senders
        work(pipeline, 1)
        wait_until(lambda: backend.bodies, "a body")
        if trouble == "down":
            backend.stop()
        backend.behaviour = trouble
        answers = backend.answers
        total = work(pipeline, 12)  # far more than the buffer holds
        if trouble == "slow":
            assert backend.answers == answers, "nothing waited for an answer"
        assert len(sender._buffer) == BUFFER
        assert total == (1 + 12) * 5 * 3
        if trouble == "down":
            backend = Backend(backend.port)
        backend.behaviour = "ok"
        before = len(backend.bodies)
        wait_until(lambda: len(backend.bodies) > before and rows(backend.bodies[-1]) == total, "the right value")
        wait_until(lambda: not sender._buffer, "an empty buffer")
        total = work(pipeline, 1)
    with backend:
        assert rows(backend.bodies[-1]) == total
        assert backend.bodies[-1]["final"]
        counts = [rows(body) for body in backend.bodies]
        assert counts == sorted(counts), "in their order"
    lines = [record.getMessage() for record in caplog.records if "metrics:" in record.getMessage()]
    assert len([line for line in lines if "failed; the last" in line]) == 1, lines


@pytest.mark.parametrize("trouble", ["down", "slow"])
def test_a_dead_backend_does_not_keep_the_end(trouble: str) -> None:
    threads = threading.active_count()
    with Backend() as backend:
        if trouble == "down":
            backend.stop()
        backend.behaviour = "slow"
        pipeline = start(backend.url)
        work(pipeline, 3)
        pipeline.stop()
        assert backend.answers == 0, "the end did not wait for an answer"
        [metric] = pipeline.query()
        assert metric.committed == {"value": 3 * 5 * 3}
    wait_until(lambda: threading.active_count() <= threads, "the end of all threads")


def test_nothing_follows_the_last_push() -> None:
    """A snapshot that takes its time while the pipeline stops is offered before the last, or not at all."""
    written: list[Snapshot] = []

    class Kept:
        name = "kept"

        def write(self, snapshot: Snapshot) -> None:
            time.sleep(0.4)
            written.append(snapshot)

        def close(self) -> None: ...

    def snapshot(final: bool) -> Snapshot:
        metric = Metric("counter", "n", "rows", "main", {"value": 1}, {"value": 1})
        if not final:
            taking.set()
            pusher._stopping.wait(5)
            time.sleep(0.2)
        return Snapshot("p", "i", 0, final, (metric,))

    taking = threading.Event()
    pusher = Pusher([Kept()], snapshot, 0.01, BUFFER)
    pusher.start()
    assert taking.wait(5)
    pusher.stop()
    assert [one.final for one in written] in ([True], [False, True])


def test_nobody_at_graphite_s_port_is_no_more_than_a_line(caplog: pytest.LogCaptureFixture) -> None:
    with Backend() as backend:
        free = backend.port
    sink = {"type": "graphite", "host": "127.0.0.1", "port": free}
    with metrics.start(sinks=[sink], period="100ms") as pipeline:
        work(pipeline, 3)
    lines = [record.getMessage() for record in caplog.records]
    assert any(line.startswith("metrics: graphite 127.0.0.1 failed") for line in lines), lines
    assert any("the last values were not delivered" in line for line in lines), lines
