"""A schema registry: schemas in it, values that bear their numbers, and what goes wrong with it, in one line each."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from socketserver import BaseServer
from typing import Any

import fastavro
import pytest
from pydantic import ValidationError

from streamgauge.app.services.local_registry import LocalRegistry
from streamgauge.base.errors import UserError
from streamgauge.descriptions.schema_registry import SchemaRegistry
from streamgauge.streams.kafka import registry as registry_client
from streamgauge.streams.kafka.registry import PREFIX, Registry, Schema
from streamgauge.streams.kafka.values import decoder_of
from tests.driver.conftest import Certificate, certificate

__all__ = ["certificate"]  # a fixture here, too

INNER = {"type": "record", "name": "a.Inner", "fields": [{"name": "n", "type": "long"}]}
OUTER = {"type": "record", "name": "a.Outer", "fields": [{"name": "one", "type": "a.Inner"}]}
OBJECT = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}


def written(number: int, schema: Any, value: object) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return PREFIX.pack(0, number) + out.getvalue()


def test_values_of_several_schemas_are_read_by_their_writers_and_others_have_a_reason(registry: LocalRegistry) -> None:
    settings = SchemaRegistry(address=registry.address)
    client = Registry(settings)
    later = {**INNER, "fields": [{"name": "n", "type": "long"}, {"name": "more", "type": "string"}]}
    first, second = (client.register("formats-a/b-value", "AVRO", json.dumps(one)) for one in (INNER, later))
    other = client.register("formats-json-value", "JSON", json.dumps(OBJECT))
    assert first == client.register("formats-a/b-value", "AVRO", json.dumps(INNER)) != second
    values = [
        written(first, INNER, {"n": 2**62}),
        written(second, later, {"n": -1, "more": "é"}),
        written(first, INNER, {"n": 5})[:-1],
        b'{"n": 1}',
        b"",
        PREFIX.pack(0, other) + b'{"n":\n1}',
        PREFIX.pack(0, 2**32 - 1) + b"\2",
    ]
    try:
        lines, reasons = decoder_of("confluent-avro", settings).lines(values)
        assert lines[:2] == [b'{"n":4611686018427387904}', '{"n":-1,"more":"é"}'.encode()]
        no_prefix = "no prefix of a schema registry (a byte 0, and a schema's number in four)"
        assert reasons == {
            2: "ends too early",
            3: no_prefix,
            4: no_prefix,
            5: f"schema {other} is of type JSON, allowed: AVRO",
            6: "schema 4294967295 is not in the registry",
        }
        lines, reasons = decoder_of("confluent-json", settings).lines(values[-2:-1])
        assert (lines, reasons) == ([b'{"n": 1}'], {})
    finally:
        client.remove(["formats-a/b-value", "formats-json-value", "formats-none-value"])
    assert client.schema(first) is None


def test_plain_avro_is_read_by_the_writer_s_schema_alone() -> None:
    value = written(0, INNER, {"n": 7})
    lines, reasons = decoder_of("avro", writer_schema=json.dumps(INNER)).lines([value[5:], value])
    assert (lines, list(reasons)) == ([b'{"n":7}', value.hex().encode()], [1])
    with pytest.raises(UserError, match=r"^writer_schema: no schema of Avro: "):
        decoder_of("avro", writer_schema="{}")


def test_a_schema_comes_with_those_that_it_refers_to(registry: LocalRegistry) -> None:
    client = Registry(SchemaRegistry(address=registry.address))
    client.register("formats-inner-value", "AVRO", json.dumps(INNER))
    reference = {"name": "a.Inner", "subject": "formats-inner-value", "version": 1}
    body = {"schema": json.dumps(OUTER), "references": [reference]}
    _, answer = client._ask("POST", "/subjects/formats-outer-value/versions", body)
    try:
        assert client.schema(answer["id"]) == Schema("AVRO", json.dumps(OUTER), (json.dumps(INNER),))
        value = written(answer["id"], {**OUTER, "fields": [{"name": "one", "type": INNER}]}, {"one": {"n": 3}})
        lines, _ = decoder_of("confluent-avro", SchemaRegistry(address=registry.address)).lines([value])
        assert lines == [b'{"one":{"n":3}}']
    finally:
        client.remove(["formats-outer-value", "formats-inner-value"])


@contextmanager
def answering(
    answer: Callable[[BaseHTTPRequestHandler], None], certificate: Certificate | None = None
) -> Iterator[str]:
    """A server on this host that answers so; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=BaseServer.serve_forever, args=(server, 0.05), daemon=True)
    thread.start()
    try:
        yield f"http{'s' if certificate else ''}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def says(status: int, body: bytes = b"{}", **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    return answer


def drips(request: BaseHTTPRequestHandler) -> None:
    """An answer that never ends, and never falls silent."""
    request.send_response(200)
    request.end_headers()
    try:
        while True:
            request.wfile.write(b" ")
            time.sleep(0.1)
    except OSError:
        return


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (says(401), "refuses (HTTP 401); correct user and password, or token"),
        (says(302, Location="http://127.0.0.2/"), "leads to another address, which is not followed; give that one"),
        (says(200, b"<html>"), "answers HTTP 200 without JSON, so it is no schema registry"),
        (says(404, b'{"error_code": 404, "message": "no such path"}'), "answers HTTP 404: no such path"),
        (says(500, b'{"message": "two\\nlines"}'), "answers HTTP 500: two lines"),
        (says(200, b'{"other": 1}'), "answers without 'schema', so it is no schema registry"),
        (drips, "does not come to an end of its answer"),
    ],
)
def test_a_registry_that_does_not_serve_is_an_error_of_the_whole(
    answer: Callable[[BaseHTTPRequestHandler], None], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry_client, "TIMEOUT_S", 1.0)
    with answering(answer) as address, pytest.raises(UserError) as failure:
        decoder_of("confluent-avro", SchemaRegistry(address=address)).lines([PREFIX.pack(0, 1)])
    assert str(failure.value) == f"registry.address: {address} {message}"


def test_a_registry_that_is_away_is_an_error_of_the_whole() -> None:
    with pytest.raises(UserError, match=r"^registry\.address: http://127\.0\.0\.1:1 does not answer \(\[Errno 111\] "):
        decoder_of("confluent-avro", SchemaRegistry(address="http://127.0.0.1:1")).lines([PREFIX.pack(0, 1)])


def test_a_login_goes_to_the_registry_and_into_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        seen.append(request.headers["Authorization"])
        says(403)(request)

    monkeypatch.setenv("REGISTRY_SECRET", "se:cré")
    with answering(answer) as address:
        for login in ({"user": "me", "password": "${REGISTRY_SECRET}"}, {"token": "${TOKEN}"}):
            monkeypatch.setenv("TOKEN", "abc.def")
            with pytest.raises(UserError, match=r"refuses \(HTTP 403\)"):
                Registry(SchemaRegistry.model_validate({"address": address, **login})).schema(1)
    assert seen == ["Basic bWU6c2U6Y3LDqQ==", "Bearer abc.def"]
    monkeypatch.setenv("TOKEN", "two\nlines")
    with pytest.raises(UserError, match=r"^registry\.token: the variable holds characters that no header may have$"):
        Registry(SchemaRegistry(address="http://localhost", token="${TOKEN}"))
    monkeypatch.delenv("TOKEN")
    with pytest.raises(UserError, match=r"^registry\.token: the environment has no variable TOKEN$"):
        Registry(SchemaRegistry(address="http://localhost", token="${TOKEN}"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"address": "localhost:8081"}, "found 'localhost:8081', allowed: http://host:port/path or https://…"),
        ({"address": "http://me:secret@host"}, "found a user part (not shown)"),
        ({"address": "http://host/?token=1"}, "found a query (not shown), allowed: http://host:port/path"),
        ({"address": "http://host", "token": "abc"}, "found a secret (not shown), allowed: ${VARIABLE}"),
        ({"address": "http://host", "user": "me"}, "user: give it with password, or neither"),
        ({"address": "http://host", "user": "a", "password": "${A}", "token": "${B}"}, "found with user"),
    ],
)
def test_settings_that_cannot_be_right_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError) as failure:
        SchemaRegistry.model_validate(given)
    assert message in failure.value.errors()[0]["msg"]


def test_a_registry_is_known_by_the_certificates_of_the_file(certificate: Certificate) -> None:
    text = json.dumps({"schema": json.dumps(INNER)}).encode()
    with answering(says(200, text), certificate) as address:
        client = Registry(SchemaRegistry(address=address, ca=certificate[0]))
        assert client.schema(1) == Schema("AVRO", json.dumps(INNER))
        with pytest.raises(UserError, match=r"does not answer \(self-signed certificate"):
            Registry(SchemaRegistry(address=address)).schema(1)


def test_certificates_are_looked_for_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"^registry\.ca: found no file {tmp_path}/no\.pem$"):
        Registry(SchemaRegistry(address="https://localhost", ca=str(tmp_path / "no.pem")))
