"""The link without a queue, of benchmarks/direct.py: rows reach the socket when due, and a full socket blocks it."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path

import pytest

from benchmarks.direct import Pusher, Task
from streamgauge.bench.driver.client import Connection
from streamgauge.bench.driver.ports import free_port
from tests.driver.conftest import Serve

STALL_S = 0.8


@pytest.mark.parametrize("stall_s", [0.0, STALL_S])
def test_nothing_is_lost_and_a_system_that_stalls_blocks_the_generator(
    serve: Serve, tmp_path: Path, stall_s: float
) -> None:
    endpoint, stop = serve([i * 1000 for i in range(1000)]), threading.Event()
    task = Task("a", endpoint, free_port(), "ns", str(tmp_path))
    pusher = Pusher(task, stop)
    with Connection(endpoint) as control, socket.socket() as system:
        control.open("a", 40_000, 1.0)
        thread = threading.Thread(target=pusher.run, daemon=True)
        thread.start()
        system.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        system.connect(("127.0.0.1", task.port))
        control.start()
        time.sleep(stall_s)
        with system.makefile("rb") as lines:
            found = [json.loads(lines.readline())["flight"] for _ in range(40_001)]
        stop.set()
        thread.join()
    assert found == [*(n % 1000 for n in range(40_000)), None]
    figures = pusher.figures()
    assert (figures["published"], figures["finished"]) == ([40_001], 1)
    blocked_s, most_late_s = figures["longest_blocked_s"], figures["slip"]["max"] / 1e9
    assert most_late_s >= blocked_s
    if stall_s:
        assert blocked_s > STALL_S / 4  # the start is a little ahead, and a few rows fit into the buffers
