"""A schema registry and a writer's schema in a benchmark file: files lie beside it, and what is reached is listed."""

from __future__ import annotations

from pathlib import Path

from streamgauge.config.reached import reached
from tests.config.samples import changed, loaded

REGISTRY = {"address": "https://registry:8081/", "user": "${WHO}", "password": "${SECRET}", "ca": "tls/ca.pem"}
JOB = {"name": "mine", "engine": "job", "bootstrap": "b:1", "command": ["run"]}


def of_topic(**kafka: object) -> dict[str, object]:
    keys = {"bootstrap": "b:1", "topic": "clicks", **kafka}
    return changed("source", value={"format": "kafka", "kafka": keys, "time": {"column": "t"}})


def test_files_are_those_beside_the_benchmark_file(tmp_path: Path) -> None:
    (tmp_path / "event.avsc").write_text('"long"')
    source = loaded(tmp_path / "a.yaml", of_topic(values="avro", writer_schema="event.avsc")).source
    assert source.kafka is not None
    assert source.kafka.writer_schema == '"long"'
    source = loaded(tmp_path / "b.yaml", of_topic(values="confluent-avro", registry=REGISTRY)).source
    assert source.kafka is not None
    assert source.kafka.registry is not None
    assert (source.kafka.registry.address, source.kafka.registry.ca) == (
        "https://registry:8081", str(tmp_path / "tls" / "ca.pem"),
    )  # fmt: skip


def test_a_registry_and_the_variables_of_its_login_are_listed(tmp_path: Path) -> None:
    raw = of_topic(values="confluent-avro", registry=REGISTRY)
    raw["systems"] = [{**JOB, "format": "confluent-json", "registry": {"address": "http://own", "token": "${TOKEN}"}}]
    listed = [(one.kind, one.key, one.name) for one in reached(loaded(tmp_path / "a.yaml", raw))]
    assert {
        ("host", "source.kafka.registry.address", "https://registry:8081"),
        ("variable", "source.kafka.registry.user", "WHO"),
        ("variable", "source.kafka.registry.password", "SECRET"),
        ("host", "systems.mine.registry.address", "http://own"),
        ("variable", "systems.mine.registry.token", "TOKEN"),
    } <= set(listed)
