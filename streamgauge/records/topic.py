"""The record of a run's topic, `topic.json`: the records that all stages of the run read."""

from __future__ import annotations

from streamgauge.descriptions.topic import Pinned
from streamgauge.records.record import Record


class TopicRange(Record):
    """Fixed range of a topic."""

    topic: str
    pinned: Pinned
