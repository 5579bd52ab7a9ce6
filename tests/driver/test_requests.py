"""Malformed requests each get one line of JSON, and the driver goes on."""

from __future__ import annotations

import json
import random
import socket
from typing import Any

import pytest

from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver.client import Connection, RefusedError
from streamgauge.bench.driver.requests import VERBS, Malformed, Open, checked, parsed
from streamgauge.bench.driver.system import Endpoint
from tests.driver.conftest import Serve

TIMES = [i * 1000 for i in range(100)]
EMPTY = Histogram().to_dict()
BODY = {"rows": 0, "event_latency": EMPTY, "processing_latency": EMPTY}


def told(endpoint: Endpoint, sent: bytes) -> list[dict[str, Any]]:
    """Lines that the driver answers to these bytes, until it hangs up."""
    with socket.create_connection((endpoint.host, endpoint.port), timeout=20) as raw:
        raw.sendall(sent)
        raw.shutdown(socket.SHUT_WR)
        return [json.loads(line) for line in raw.makefile("rb").read().splitlines()]


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "request: found b'GET / HTTP/1.1\\r\\n', allowed: a JSON object on one line"),
        (bytes(range(256)), "request: found b'"),
        (b"[1,2]\n", "request: found [1, 2], allowed: a JSON object with a verb"),
        (b"{}\n", "verb: found None, allowed: hello, latest"),
        (b"[" * 16_000 + b"\n", "allowed: a JSON object on one line"),
        (b'{"a":' * 3_000 + b"\n", "allowed: a JSON object on one line"),
        (b'{"version":1}\n', "verb: found None"),
        (b'{"verb":["hello"]}\n', "verb: found ['hello']"),
        (b'{"verb":"hello"}\n', "version: found nothing, allowed: a whole number"),
        (b'{"verb":"hello","version":1,"attempt":[1]}\n', "attempt: found [1], allowed: text"),
        (b'{"verb":"hello","version":1,"token":{}}\n', "token: found {}, allowed: text"),
        (b'{"verb":"latest"}\n', "the first request must be hello with version 1"),
    ],
)
def test_a_stranger_s_first_line_is_answered(serve: Serve, sent: bytes, error: str) -> None:
    endpoint = serve(TIMES)
    (answer,) = told(endpoint, sent)
    assert answer["ok"] is False
    assert error in answer["error"]
    with Connection(endpoint) as connection:
        connection.open("a", 10, 1)
        assert connection.status()["attempt"] == "a"


LATENCY = "event_latency: found"


@pytest.mark.parametrize(
    ("verb", "fields", "error"),
    [
        ("report", {"epoch": 0, "body": BODY | {"rows": -1}}, "body.rows: found -1, allowed: a whole number from 0 on"),
        ("report", {"epoch": 0, "body": BODY | {"rows": "x"}}, "body.rows: found 'x'"),
        ("report", {"epoch": 0, "body": {"rows": 5}}, "body.event_latency: found nothing, allowed: a histogram"),
        ("report", {"epoch": 0, "body": BODY | {"event_latency": {"count": 1}}}, LATENCY),
        ("report", {"epoch": 0, "body": BODY | {"event_latency": EMPTY | {"count": 2}}}, LATENCY),
        ("report", {"epoch": 0, "body": BODY | {"event_latency": EMPTY | {"buckets": [-1]}}}, LATENCY),
        ("report", {"epoch": 0, "body": BODY | {"checksum": 2**64}}, "body.checksum: found 18446744073709551616"),
        ("report", {"epoch": 0, "body": BODY | {"emitted_wall_ns": [1]}}, "body.emitted_wall_ns: found [1]"),
        ("report", {"epoch": -1, "body": BODY}, "epoch: found -1"),
        ("report", {"epoch": 0, "body": [1]}, "body: found [1], allowed: an object"),
        ("open", {"attempt": ["b"], "rate": 10, "seconds": 1}, "attempt: found ['b'], allowed: text"),
        ("open", {"attempt": "b", "rate": 1e308, "seconds": 1}, "rate: found 1e+308, allowed: events/s above 0"),
        ("open", {"attempt": "b", "rate": 10, "seconds": 1e300}, "seconds: found 1e+300, allowed: seconds above 0"),
        ("open", {"attempt": "b", "rate": 10, "seconds": 1, "beyond_us": 2**70}, "beyond_us: found 118059162071741"),
        ("open", {"attempt": "b", "rate": 10, "seconds": 1, "hold": True}, "hold: found True"),
        ("open", {"attempt": "b", "rate": 10, "seconds": 1, "behind_s": "1"}, "behind_s: found '1'"),
        ("hold", {"rows": 2**70}, "rows: found 118059162071741"),
        ("hold", {"rows": -1}, "rows: found -1"),
        ("read", {"partition": True, "from": 0}, "partition: found True"),
        ("read", {"partition": 0, "from": 0, "wait_ms": float("inf")}, "wait_ms: found inf"),
        ("commit", {"offsets": {"x": 0}}, "offsets: found {'x': 0}, allowed: an object from partition to row"),
        ("commit", {"offsets": {"0": -1}}, "offsets: found -1"),
        ("samples", {"since_ns": "now"}, "since_ns: found 'now'"),
        ("start", {"start_wall_ns": 1.5}, "start_wall_ns: found 1.5"),
    ],
)
def test_a_field_that_is_none_is_refused_by_name(serve: Serve, verb: str, fields: dict[str, Any], error: str) -> None:
    with Connection(serve(TIMES)) as connection:
        connection.open("a", 10, 1)
        if verb == "report":
            fields = {"attempt": "a", **fields}
        with pytest.raises(RefusedError) as refused:
            connection._ask(verb, **fields)
        assert error in str(refused.value)
        assert "\n" not in str(refused.value)
        assert connection.latest().rows == (0,)


def test_a_line_that_never_ends_is_refused(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgauge.bench.driver.server.MAX_LINE", 1000)
    endpoint = serve(TIMES)
    hello = b'{"verb":"hello","version":1}\n'
    first, second = told(endpoint, hello + b'{"verb":"' + b"x" * 5000)
    assert (first["ok"], second["ok"]) == (True, False)
    assert second["error"].endswith("allowed: a JSON object on one line")


def test_whatever_is_drawn_is_answered_in_one_line(serve: Serve) -> None:
    """A thousand messages by seed: verbs with fields of all kinds and sizes, and bytes."""
    draw = random.Random(7)
    values: list[Any] = [
        None, True, -1, 0, 2**70, 1.5, 1e308, float("nan"), "", "x" * 300, "a", [], [1], {}, {"0": 1}, {"x": []}, EMPTY,
    ]  # fmt: skip
    keys = (
        "partition", "from", "to", "max_rows", "wait_ms", "offsets", "attempt", "epoch", "body", "rate", "seconds",
        "hold", "behind_s", "beyond_us", "start_wall_ns", "rows", "since_ns", "key", "serving", "version", "token",
    )  # fmt: skip
    with Connection(serve(TIMES)) as connection:
        connection.open("a", 10, 1)
        refused: list[str] = []
        for _ in range(1000):
            fields = {key: draw.choice(values) for key in draw.sample(keys, draw.randrange(6))}
            fields.pop("wait_ms", None)  # a wait is no fault
            try:
                connection._ask(draw.choice([verb for verb in VERBS if verb not in ("read", "start")]), **fields)
            except RefusedError as problem:
                refused.append(str(problem))
        assert len(refused) > 500
        assert not [line for line in refused if "\n" in line or "Error:" in line]
        assert connection.status()["failure"] is None


def test_a_sound_request_passes() -> None:
    line = b'{"verb":"open","attempt":"a","rate":10,"seconds":1,"hold":null,"behind_s":null,"beyond_us":0,"new":1}'
    assert checked(parsed(line)) == Open(attempt="a", rate=10, seconds=1, behind_s=None)
    with pytest.raises(Malformed, match="verb: found 'fly', allowed: hello, latest, read"):
        checked({"verb": "fly"})
