"""The fixed range of a topic as commands print it, so that they can be repeated."""

from __future__ import annotations

from streamgauge.descriptions.topic import Pinned, Topic


def _fixed(topic: Topic) -> Pinned:
    assert topic.pinned is not None
    return topic.pinned


def fixed_options(topic: Topic) -> str:
    """Options that name the range: offsets by partition."""
    starts, ends = (
        ",".join(f"{number}:{edges[side]}" for number, edges in _fixed(topic).ranges.items()) for side in (0, 1)
    )
    return f"--from {starts} --until {ends}"


def fixed_json(topic: Topic) -> dict[str, object]:
    """Name and id of a topic, its offsets by partition, and whose times its records bear, as `--json` tells them."""
    pinned = _fixed(topic)
    starts, ends = ({number: edges[side] for number, edges in pinned.ranges.items()} for side in (0, 1))
    times = "LogAppendTime" if pinned.appended else "CreateTime"
    return {"url": topic.url, "id": pinned.topic_id, "from": starts, "until": ends, "times": times}
