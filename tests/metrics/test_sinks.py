"""Sinks deliver the same values; bodies match the published schema; secrets stay out of logs."""

from __future__ import annotations

import json
import logging
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint

from streamgauge import config, metrics
from streamgauge.base.errors import UserError
from streamgauge.metrics.sinks import in_ascii, make_sink
from streamgauge.metrics.sinks.otel import OtelSink
from streamgauge.metrics.snapshot import Snapshot
from tests.metrics.backend import Backend, wait_until
from tests.told import known

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "metrics.schema.json").read_text())
AT_NS = 1_700_000_000_250_000_000


def update() -> None:
    with metrics.step("parse"):
        metrics.counter("shop", "rows").inc(7)
        metrics.distribution("shop", "price").update_many([1, 2.5, 4])
        metrics.gauge("shop", "last id").set(42, at_ns=AT_NS)


EXPECTED: dict[tuple[str, str], Any] = {
    ("counters", "rows"): 7,
    ("distributions", "price"): {"count": 3, "sum": 7.5, "min": 1, "max": 4, "mean": 2.5},
    ("gauges", "last id"): {"value": 42, "timestamp": "2023-11-14T22:13:20.250+00:00"},
}


def read(body: dict[str, Any], state: str = "committed") -> dict[tuple[str, str], Any]:
    kinds = ("counters", "distributions", "gauges")
    return {(kind, m["name"]["name"]): m[state] for kind in kinds for m in body[kind]}


def test_http_bodies_match_the_schema_and_the_token_stays_out_of_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    monkeypatch.setenv("BACKEND_TOKEN", "Bearer s3cret")
    caplog.set_level(logging.DEBUG)
    with Backend() as backend:
        sink = {
            "type": "http",
            "url": f"{backend.url}?key=als0",
            "headers_from_env": {"Authorization": "BACKEND_TOKEN"},
        }
        with metrics.start(name="shop", sinks=[sink], period="100ms") as pipeline:
            backend.behaviour = "500"
            update()
            wait_until(lambda: "answered HTTP 500" in caplog.text, "the failure in the log")
            backend.behaviour = "ok"
            wait_until(lambda: backend.bodies, "a body")
        for body in backend.bodies:
            jsonschema.validate(body, SCHEMA, format_checker=jsonschema.FormatChecker())
            assert {m["step"] for m in body["counters"]} == {"parse"}
            assert (body["pipeline"], body["instance"]) == ("shop", pipeline.instance)
        assert read(backend.bodies[-1]) == read(backend.bodies[-1], "attempted") == EXPECTED
        assert [body["final"] for body in backend.bodies][-1] is True
        assert {headers["Authorization"] for headers in backend.headers} == {"Bearer s3cret"}
    ours = "".join(record.getMessage() for record in caplog.records if record.name == "streamgauge")
    assert "answers again" in ours
    assert "s3cret" not in caplog.text
    assert "als0" not in ours


def test_the_schema_refuses_what_it_should() -> None:
    good = Snapshot("p", "i", AT_NS, False, ()).body()
    jsonschema.validate(good, SCHEMA)
    for wrong in ({"at": "today"}, {"counters": [{"name": "x"}]}, {"more": 1}, {"final": None}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(good | wrong, SCHEMA)


def test_graphite_lines_have_the_path_and_the_gauge_its_own_time() -> None:
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            wire, _ = listener.accept()
            with wire:
                while data := wire.recv(4096):
                    received.append(data)

        thread = threading.Thread(target=accept)
        thread.start()
        sink = {"type": "graphite", "host": "127.0.0.1", "port": listener.getsockname()[1], "prefix": "lab.one"}
        with metrics.start(name="my shop", sinks=[sink], period="60s"):
            update()
        thread.join(10)
    lines = b"".join(received).decode().splitlines()
    path = r"lab\.one\.my_shop\.parse\.(counter|distribution|gauge)\.shop\.\w+\.(attempted|committed)\.\w+ \S+ \d+"
    assert all(re.fullmatch(path, line) for line in lines)
    assert len(lines) == 2 * (1 + 5 + 1)
    assert f"lab.one.my_shop.parse.gauge.shop.last_id.committed.value 42 {AT_NS // 10**9}" in lines
    assert any(line.startswith("lab.one.my_shop.parse.distribution.shop.price.attempted.mean 2.5 ") for line in lines)


def test_names_that_are_not_ascii_stay_apart() -> None:
    names = ["東京", "大阪", "Köln", "Küln", "plain name"]
    paths = [in_ascii(name, re.compile(r"[^A-Za-z0-9_-]+")) for name in names]
    assert len(set(paths)) == len(names)
    assert paths[-1] == "plain_name"
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", path) for path in paths)


OTEL = {
    "shop.rows": 7, "shop.price.count": 3, "shop.price.sum": 7.5, "shop.price.min": 1, "shop.price.max": 4,
    "shop.price.mean": 2.5, "shop.last_id": 42,
}  # fmt: skip


def test_opentelemetry_s_own_reader_sees_the_same_values() -> None:
    reader = InMemoryMetricReader()
    with metrics.start(sinks=[OtelSink(config.MetricsSink(type="otel"), reader)], period="100ms"):
        update()
        seen: dict[tuple[str, str], Any] = {}

        def collected() -> bool:
            data = reader.get_metrics_data()
            for metric in data.resource_metrics[0].scope_metrics[0].metrics if data else ():
                for point in metric.data.data_points:
                    assert isinstance(point, NumberDataPoint)
                    about = known(point.attributes)
                    assert about["step"] == "parse"
                    seen[metric.name, str(about["state"])] = point.value
            return len(seen) == 2 * len(OTEL)

        wait_until(collected, "all instruments")
    assert seen == {(name, state): value for name, value in OTEL.items() for state in ("attempted", "committed")}


def test_an_opentelemetry_collector_gets_the_same_values_by_otlp() -> None:
    requests: list[ExportMetricsServiceRequest] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            requests.append(ExportMetricsServiceRequest.FromString(_plain(body, self.headers["Content-Encoding"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        sink = {"type": "otel", "url": f"http://127.0.0.1:{server.server_address[1]}/v1/metrics"}
        with metrics.start(name="shop", sinks=[sink], period="60s"):
            update()
        server.shutdown()
    [resource] = requests[-1].resource_metrics
    assert {a.key: a.value.string_value for a in resource.resource.attributes}["service.name"] == "shop"
    points = {}
    for metric in resource.scope_metrics[0].metrics:
        for point in (metric.sum if metric.HasField("sum") else metric.gauge).data_points:
            if {a.key: a.value.string_value for a in point.attributes}["state"] == "committed":
                points[metric.name] = getattr(point, point.WhichOneof("value"))
    assert points == OTEL


def _plain(body: bytes, encoding: str | None) -> bytes:
    import gzip

    return gzip.decompress(body) if encoding == "gzip" else body


def test_console_shows_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    with metrics.start(name="shop", sinks=[{"type": "console"}], period="60s"):
        update()
    title, *lines = capsys.readouterr().err.splitlines()
    assert title.startswith("metrics of shop at ")
    assert title.endswith(" (final)")
    assert lines == [
        "  parse  shop.rows  attempted 7  committed 7",
        "  parse  shop.price  attempted count 3 sum 7.5 min 1 max 4 mean 2.5  "
        "committed count 3 sum 7.5 min 1 max 4 mean 2.5",
        "  parse  shop.last id  attempted 42  committed 42",
    ]


class Counting:
    """A sink of one's own, without a place for two of the parts."""

    name = "counting"
    lacks = frozenset({"gauge", "committed"})

    def __init__(self, settings: config.MetricsSink) -> None:
        self.seen: list[Snapshot] = settings.options["seen"]

    def write(self, snapshot: Snapshot) -> None:
        self.seen.append(snapshot)

    def close(self) -> None: ...


def test_a_sink_of_ones_own_gets_what_it_has_a_place_for(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Snapshot] = []
    ready = Counting(config.MetricsSink(type="own", options={"seen": seen}))
    with metrics.start(sinks=[ready], period="100ms"):
        update()
        wait_until(lambda: len(seen) > 2, "three pushes")
    assert {(m.kind, m.committed) for m in seen[-1].metrics} == {("counter", None), ("distribution", None)}
    lines = [record.getMessage() for record in caplog.records]
    assert sorted(lines) == [
        "metrics: counting has no committed values; they are left out",
        "metrics: counting has no gauge values; they are left out",
    ]
    described = config.MetricsSink(type="tests.metrics.test_sinks:Counting", options={"seen": []})
    assert isinstance(make_sink(described, "here"), Counting)


@pytest.fixture
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_TOKEN", raising=False)
    monkeypatch.setenv("BAD_TOKEN", "s3cret\nnewline")


@pytest.mark.usefixtures("_no_token")
@pytest.mark.parametrize(
    ("sink", "line"),
    [
        ({"type": "statsd"}, "found 'statsd', allowed: console, http, graphite, otel, or package.module:Class"),
        ({"type": "no.such:Thing"}, "cannot be loaded"),
        ({"type": "builtins:dict"}, "is no sink"),
        ({"type": "http"}, "needs the key url"),
        ({"type": "graphite"}, "needs the key host"),
        ({"type": "http", "url": "ftp://x"}, "allowed: http://"),
        ({"type": "http", "url": "http://me:s3cret@host/"}, "use headers_from_env"),
        (
            {"type": "http", "url": "http://h/", "headers_from_env": {"Authorization": "NO_TOKEN"}},
            "NO_TOKEN is not set",
        ),
        (
            {"type": "http", "url": "http://h/", "headers_from_env": {"Authorization": "BAD_TOKEN"}},
            "no header may have",
        ),
        ({"type": "console", "color": 1}, "unknown key"),
    ],
)
def test_a_wrong_sink_is_one_line_before_anything_runs(sink: dict[str, Any], line: str) -> None:
    with pytest.raises(UserError, match=re.escape(line)) as problem:
        metrics.start(sinks=[sink])
    assert "s3cret" not in str(problem.value)
