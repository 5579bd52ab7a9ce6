"""A topic in runs: its range is fixed once, and an ingest that is killed goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.app.services.broker import Broker
from streamgauge.base.errors import UserError
from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.config import Benchmark, Source
from streamgauge.descriptions.topic import Topic
from streamgauge.records.manifests import EventsManifest
from streamgauge.records.profile import Profile
from streamgauge.results.index import garbage_collection
from streamgauge.streams.kafka import ranges
from streamgauge.streams.keys import Scaled, events_key
from streamgauge.streams.sources import topics
from streamgauge.streams.stages import ingest
from streamgauge.streams.stages.workers import Forked, Workers
from tests.conftest import everywhere
from tests.kafka.topics import Sent, late_events, made, removed, write

KILLED = """
import sys
from pathlib import Path
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Source
from streamgauge.streams.keys import Scaled
from streamgauge.streams.sources import topics
from streamgauge.streams.stages import ingest
from streamgauge.streams.stages.workers import Forked

topics.SPAN_OFFSETS = 400
ingest.run(Forked(1), Scaled(Source.model_validate_json(sys.argv[1])), Store(Path(sys.argv[2])))
"""


def source_of(broker: Broker, topic: str, **more: object) -> Source:
    return Source.model_validate(
        {
            "format": "kafka",
            "kafka": {"bootstrap": broker.bootstrap, "topic": topic},
            "time": {"column": "payload.ts", "unit": "ms"},
            **more,
        }
    )


@pytest.fixture(scope="module")
def topic(broker: Broker) -> Iterator[str]:
    """Name of a topic of 3,000 records in two partitions, some of which are no events."""
    name = made(broker.bootstrap, 2, message_timestamp_type="LogAppendTime")
    write(broker.bootstrap, name, late_events(2990, 2))
    write(broker.bootstrap, name, [*(Sent(1, None, b"k") for _ in range(6)), *(Sent(0, b"no JSON") for _ in range(4))])
    yield name
    removed(broker.bootstrap, name)


def rows(events: Artifact) -> pa.Table:
    return pa.concat_tables([pq.read_table(file) for file in events.files()])


def test_all_stages_of_a_run_read_what_its_first_one_fixed(broker: Broker, topic: str, tmp_path: Path) -> None:
    own = made(broker.bootstrap, 2)
    write(broker.bootstrap, own, late_events(30, 2))
    raw = {"name": "b", "source": source_of(broker, own).model_dump(), "experiments": []}
    benchmark = Benchmark.model_validate({**raw, "experiments": [{"name": "e", "target": "source"}]})
    assert topics.in_run(benchmark, tmp_path, ask=False) == benchmark
    first = topics.in_run(benchmark, tmp_path)
    write(broker.bootstrap, own, late_events(30, 2))
    assert topics.in_run(benchmark, tmp_path) == first == topics.in_run(benchmark, tmp_path, ask=False)
    assert first.source.kafka
    assert first.source.kafka.pinned
    assert sum(high - low for low, high in first.source.kafka.pinned.ranges.values()) == 30
    other = benchmark.model_copy(update={"source": source_of(broker, topic)})
    with pytest.raises(UserError, match=f"found {topic}, but this run reads {own}; begin another run"):
        topics.in_run(other, tmp_path)

    removed(broker.bootstrap, own)
    with pytest.raises(UserError, match="the broker has no such topic"):
        ingest.run(Forked(1), first, Store(tmp_path))


@everywhere
def test_the_quarantine_names_partition_and_offset_and_a_tombstone_is_no_bad_line(
    workers: Workers, broker: Broker, topic: str, tmp_path: Path
) -> None:
    source = topics.pinned(source_of(broker, topic, max_bad_fraction=4 / 3000))
    events = ingest.run(workers, Scaled(source), Store(tmp_path))
    manifest = events.read(EventsManifest)
    assert (manifest.events, manifest.quarantined, manifest.lines) == (2990, 10, 3000)
    bad = pq.read_table(events.path / manifest.quarantine_file).to_pylist()
    assert source.kafka
    assert source.kafka.pinned
    ends = [source.kafka.pinned.ranges[n][1] for n in (0, 1)]
    assert [(row["file"], row["line_number"], row["reason"], row["text"]) for row in bad] == [
        *((f"{source.kafka.url} partition 0", ends[0] - k, "not a JSON object", b"no JSON") for k in (4, 3, 2, 1)),
        *((f"{source.kafka.url} partition 1", ends[1] - k, "tombstone", b"") for k in (6, 5, 4, 3, 2, 1)),
    ]
    strict = source.model_copy(update={"max_bad_fraction": 3 / 3000})
    with pytest.raises(UserError, match=f"partition 0: offset {ends[0] - 4}: not a JSON object: 'no JSON'; 4 of 3000"):
        ingest.run(workers, Scaled(strict), Store(tmp_path))


def test_an_ingest_that_is_killed_goes_on_and_makes_the_same_events(
    broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, store = topics.pinned(source_of(broker, topic)), Store(tmp_path / "store")
    kept = store.path("events", f"{events_key(store, Scaled(source))}.kept")
    command = [sys.executable, "-c", KILLED, source.model_dump_json(), str(store.root)]
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 60
    while len(done := [piece.parent for piece in kept.glob("[0-9]*/piece.json")]) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(done) >= 3
    assert store.find("events", events_key(store, Scaled(source))) is None
    left = garbage_collection.collect(store, 1 << 40, keep_runs=1, dry_run=True)
    assert kept not in [item.path for item in left.removed]
    left = garbage_collection.collect(store, 0, keep_runs=1, dry_run=True)
    assert kept in [item.path for item in left.removed]

    read = list[str]()
    before = ranges.read

    def noted(topic: Topic, span: ranges.Span) -> object:
        read.append(f"{span.partition}-{span.low}-{span.high}")
        return before(topic, span)

    monkeypatch.setattr(topics, "SPAN_OFFSETS", 400)
    monkeypatch.setattr(ranges, "read", noted)
    events = ingest.run(Forked(1), Scaled(source), store)
    sampled = read.pop(0)  # the first lines are looked at
    assert sampled == "0-0-400"
    assert set(read).isdisjoint(folder.name for folder in done)
    assert not kept.exists()
    monkeypatch.undo()
    whole = ingest.run(Forked(2), Scaled(source), Store(tmp_path / "other"))
    assert rows(events).equals(rows(whole))


@pytest.mark.e2e
def test_a_run_reads_one_range_however_the_topic_grows(broker: Broker, tmp_path: Path) -> None:
    own = made(broker.bootstrap, 2, message_timestamp_type="LogAppendTime")
    write(broker.bootstrap, own, late_events(200, 2))
    keys = source_of(broker, own).model_dump(mode="json", exclude_defaults=True)
    file = tmp_path / "topic.json"
    file.write_text(json.dumps({"name": "topic", "source": keys, "experiments": [{"name": "e", "target": "source"}]}))
    command = str(Path(sys.executable).with_name("streamgauge"))
    records = str(tmp_path / "artifacts" / "runs" / "one")
    for only in ("generate", "analyze"):
        more = ["--artifacts", str(tmp_path / "artifacts"), "--only", only, "--run", "one", "--json"]
        ran = subprocess.run([command, "run", str(file), *more], capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout) == {"run": "one", "exit_code": 0, "records": records, "page": None}
        assert only in ran.stderr, "the rest is told there"
        write(broker.bootstrap, own, late_events(50, 2))
    (profile,) = (tmp_path / "artifacts").glob("data/profile/*/profile.json")
    found = Profile.read(profile)
    assert (found.events, found.by_part and found.by_part.column) == (200, "kafka_partition")
    removed(broker.bootstrap, own)
