"""Slow, greedy and guessing clients of a driver: honest ones get their place all the same."""

from __future__ import annotations

import json
import logging
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import psutil
import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.driver import process
from streamgauge.bench.driver.admission import Admitting
from streamgauge.bench.driver.client import Connection, RefusedError
from streamgauge.bench.driver.offer import Driver
from streamgauge.bench.driver.server import Server
from streamgauge.bench.driver.serving import Serving
from streamgauge.bench.driver.system import Endpoint
from tests.driver.conftest import Certificate, stream_of

Limited = Callable[..., Endpoint]


@pytest.fixture
def limited() -> Iterator[Limited]:
    """limited(token=…, context=…, **limits of the admission) -> where the driver listens."""
    with ExitStack() as stack:

        def start(token: str = "", context: ssl.SSLContext | None = None, **limits: Any) -> Endpoint:
            driver = Driver(stream_of([0, 1, 2]), Serving())
            server = Server(driver, "127.0.0.1", 0, token=token, context=context, limits=Admitting(**limits))
            stack.callback(server.close)
            return Endpoint("127.0.0.1", server.port, 1, token)

        yield start


def connected(endpoint: Endpoint) -> socket.socket:
    return socket.create_connection((endpoint.host, endpoint.port), timeout=5)


def seconds_until_closed(slow: socket.socket, every_s: float) -> float:
    """Seconds for which a client that sends a byte now and then keeps its connection."""
    began = time.monotonic()
    slow.settimeout(every_s)
    while time.monotonic() < began + 5:
        with suppress(TimeoutError):
            try:
                slow.sendall(b" ")
                if not slow.recv(1000):
                    break
            except (ConnectionError, BrokenPipeError):
                break
    return time.monotonic() - began


def test_a_hello_that_comes_byte_by_byte_ends_with_its_time(limited: Limited) -> None:
    with connected(limited(hello_s=0.4)) as slow:
        assert 0.3 < seconds_until_closed(slow, 0.05) < 2


def test_so_does_a_handshake(limited: Limited, certificate: Certificate) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    endpoint = limited(hello_s=0.4, context=context)
    with connected(endpoint) as slow:
        slow.sendall(b"\x16\x03\x01\x02\x00")  # a handshake of 512 bytes is announced
        assert 0.3 < seconds_until_closed(slow, 0.05) < 2
    Connection(Endpoint("127.0.0.1", endpoint.port, 1, "", certificate[0])).close()


def test_clients_without_hello_shut_nobody_out(limited: Limited) -> None:
    endpoint = limited(places=20)
    with ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(connected(endpoint))
        honest = [stack.enter_context(Connection(endpoint)) for _ in range(12)]
        honest[0].open("a", 10, 1)
        assert [client.status()["attempt"] for client in honest[:1]] == ["a"]
        assert {client.partitions for client in honest} == {1}


def test_places_are_counted_after_hello_and_the_next_client_is_told(limited: Limited) -> None:
    endpoint = limited(places=2)
    full = pytest.raises(RefusedError, match="all places are taken; end other clients")
    with Connection(endpoint), Connection(endpoint), full:
        Connection(endpoint)
    for _ in range(100):
        with suppress(RefusedError):
            Connection(endpoint).close()
            return
        time.sleep(0.02)
    raise AssertionError("no place became free")


def test_a_long_first_line_is_refused_and_not_kept(limited: Limited) -> None:
    endpoint = limited(waiting=100)
    before = psutil.Process().memory_info().rss
    with ExitStack() as stack:
        for _ in range(20):
            greedy = stack.enter_context(connected(endpoint))
            with suppress(ConnectionError, BrokenPipeError):
                greedy.sendall(b"x" * 2_000_000)
        assert psutil.Process().memory_info().rss - before < 20_000_000
    with connected(endpoint) as greedy:
        greedy.sendall(b"x" * 2**14)
        assert json.loads(greedy.makefile().readline())["error"].startswith(
            "the first request must be hello, of at most 16,384"
        )


def test_guesses_are_slow_and_logged_and_the_right_token_is_not(
    limited: Limited, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = limited(token="secret", wrong_s=0.1)
    began = time.monotonic()
    with caplog.at_level(logging.WARNING, "streamgauge"):
        for guess in ("a", "b", "c", "d"):
            with pytest.raises(RefusedError, match="wrong token"):
                Connection(Endpoint("127.0.0.1", endpoint.port, 1, guess))
    assert time.monotonic() - began >= 0.4
    assert [record.message for record in caplog.records] == [
        f"a client at 127.0.0.1 gave a wrong token: {count} so far" for count in (1, 2, 4)
    ]
    Connection(endpoint).close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.7.7", "example"])
def test_an_open_driver_beyond_this_host_must_be_asked_for(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(process.TOKEN, raising=False)
    with pytest.raises(UserError, match=f"--host: found {host} without a token, .* or allow it by --open"):
        process.run(process.Settings(stream="nowhere", host=host))
    with pytest.raises(UserError, match="nowhere: no finished stream there"):
        process.run(process.Settings(stream="nowhere", host=host, open=True))
    monkeypatch.setenv(process.TOKEN, "secret")
    with pytest.raises(UserError, match="nowhere: no finished stream there"):
        process.run(process.Settings(stream="nowhere", host=host))
