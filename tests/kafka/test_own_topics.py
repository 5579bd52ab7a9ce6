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
    others.append(f"{application}-orders2")  # another one's, made meanwhile
    for made in (f"{application}-count-changelog", f"{application}-repartition", *others[2:], f"{name}-s-changelog"):
        topics.make(made, 1)
    own.remove()
    assert {topic for topic in topics.names() if name in topic} == {*others}
    assert not (tmp_path / "work" / "topics.json").exists()
    topics.remove(others)


def test_a_later_process_removes_what_bears_our_name_and_nothing_that_a_user_s_name_begins(
    broker: Broker, tmp_path: Path
) -> None:
    topics, ours = Topics(Access(broker.bootstrap)), f"streamgauge-{uuid.uuid4().hex[:8]}"
    theirs, file = f"app-{ours}", tmp_path / "topics.json"
    own = OwnTopics(topics, file)
    own.expect(theirs)
    own.expect(ours)
    own.make(f"{ours}-in", 1)
    for made in (f"{ours}-count-changelog", f"{ours}-any", f"{theirs}-v2", f"{theirs}-store-changelog"):
        topics.make(made, 1)
    OwnTopics(topics, file).remove()
    left = {f"{theirs}-v2", f"{theirs}-store-changelog"}
    assert {topic for topic in topics.names() if ours in topic} == left
    topics.remove(left)
