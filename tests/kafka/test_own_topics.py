"""Topics of a job: those that it made go with ours, and others stay; the list outlives its process."""

from __future__ import annotations

import uuid
from pathlib import Path

from streamgauge.app.services.broker import Broker
from streamgauge.bench.engines.job.own_topics import OwnTopics
from streamgauge.streams.kafka.clients import Access, Topics


def test_topics_of_a_job_go_and_those_that_were_there_before_stay(broker: Broker, tmp_path: Path) -> None:
    topics, name = Topics(Access(broker.bootstrap)), f"test-{uuid.uuid4().hex[:8]}"
    application = f"app-{name}"
    own = OwnTopics(topics, tmp_path / "work" / "topics.json")
    others = [f"{application}-orders", f"{name}x-changelog", f"{application}2-changelog"]
    for other in others[:2]:
        topics.make(other, 1)
    own.expect(application)
    own.make(f"{name}-in", 1)
    own.make(f"{name}-out", 1)
    for made in (f"{application}-count-changelog", f"{application}-repartition", others[2], f"{name}-store-changelog"):
        topics.make(made, 1)
    OwnTopics(topics, tmp_path / "work" / "topics.json").remove()  # as a later process does
    assert {topic for topic in topics.names() if name in topic} == {*others}
    assert not (tmp_path / "work" / "topics.json").exists()
    topics.remove(others)
