"""The wire: messages of nonsense, and clients that are slow, greedy or guess."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from tests.hostile.draw import ODD, Draw


def wire(random: random.Random) -> Draw:
    verbs = [
        "hello",
        "latest",
        "read",
        "progress",
        "report",
        "open",
        "start",
        "rows",
        "samples",
        "serve",
        "stop",
        "x",
        None,
    ]
    message: Any = {"verb": random.choice(verbs), "version": random.choice([1, 1, *ODD[:8]])}
    for _ in range(random.randrange(5)):
        message[
            random.choice(
                ["attempt", "from", "to", "partition", "offsets", "rate", "seconds", "body", "wait_ms", "token"]
            )
        ] = random.choice(ODD)
    line = json.dumps(message).encode()
    line = random.choice([line] * 6 + [random.randbytes(40), b"[" * 4000, line[:-3], b"GET / HTTP/1.1\r"])
    return Draw(["wire"], {"message": line + b"\n"})


def parse(work: Path) -> int:
    from streamgauge.bench.driver.requests import Malformed, checked, parsed

    try:
        checked(parsed((work / "message").read_bytes()))
    except Malformed as problem:
        print(f"streamgauge: {problem}", file=sys.stderr)
        return 2
    return 0


#: limits of the server under test, so that a draw is over in a second


def slow_clients(random: random.Random) -> Draw:
    """Clients of a driver that are silent, slow, greedy, or speak something else, beside an honest one."""
    first = [
        "", " ", "{", '{"verb": "hello"', "GET / HTTP/1.1\r\nHost: x\r\n",
        "POST / HTTP/1.1\r\nX: " + "x" * 9000 + "\r\n\r\n",
        "\x16\x03\x01\x02\x00", "x" * 70_000, "[" * 20_000, "\0" * 100,
        '{"verb": "hello", "version": 1, "token": "a"}\n',
        '{"verb": "status"}\n', "\n", "\r\n\r\n", "é" * 50,
    ]  # fmt: skip
    then = [None, " ", "x", "\n", "X-Header: x\r\n", "x" * 10_000, '{"verb": "status"}\n']
    clients = [
        {"first": random.choice(first), "then": random.choice(then), "every_s": random.choice([0.01, 0.05, 0.2])}
        for _ in range(random.choice([1, 3, 10, 40]))
    ]
    return Draw(["slow"], {"clients": json.dumps(clients).encode()})


def slow(work: Path) -> int:
    """Asserts that an honest client is answered among the slow ones, and that all of those end with their time."""
    from streamgauge.bench.driver.admission import Admitting
    from streamgauge.bench.driver.client import Connection
    from streamgauge.bench.driver.offer import Driver
    from streamgauge.bench.driver.server import Server
    from streamgauge.bench.driver.serving import Serving
    from streamgauge.bench.driver.system import Endpoint
    from tests.driver.conftest import stream_of

    clients = json.loads((work / "clients").read_bytes())
    limits = Admitting(places=12, waiting=8, hello_s=0.5, wrong_s=0.01)
    server = Server(Driver(stream_of([0, 1, 2]), Serving()), "127.0.0.1", 0, token="right", limits=limits)
    before = psutil.Process().memory_info().rss
    threads = [threading.Thread(target=_client, args=(server.port, one), daemon=True) for one in clients]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    began = time.monotonic()
    with Connection(Endpoint("127.0.0.1", server.port, 1, "right"), timeout_s=20) as honest:
        honest.open("a", 10, 1)
        assert honest.status()["attempt"] == "a"
    assert time.monotonic() - began < 10, "the honest client waited"
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive(), "a slow client kept its connection"
    assert psutil.Process().memory_info().rss - before < 200 << 20, "slow clients took memory"
    server.close()
    return 0


def _client(port: int, one: dict[str, Any]) -> None:
    """Sends as it was drawn until the server hangs up."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(one["first"].encode())
        connection.settimeout(one["every_s"])
        while True:
            with contextlib.suppress(TimeoutError):
                if one["then"]:
                    connection.sendall(one["then"].encode())
                if not connection.recv(10_000):
                    return
