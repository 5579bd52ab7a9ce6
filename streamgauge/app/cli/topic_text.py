"""The fixed range of a topic as commands print it, so that they can be repeated."""

from __future__ import annotations

from typing import Any

from streamgauge.descriptions.topic import Topic


def fixed_options(topic: Topic) -> str:
    """Options that name the range: offsets by partition."""
    facts = fixed_json(topic)
    starts, ends = (",".join(f"{n}:{offset}" for n, offset in facts[edge].items()) for edge in ("from", "until"))
    return f"--from {starts} --until {ends}"


def fixed_json(topic: Topic) -> dict[str, Any]:
    """Name and id of a topic, its offsets by partition, and whose times its records bear, as `--json` tells them."""
    pinned = topic.pinned
    assert pinned is not None
    starts, ends = ({number: edges[side] for number, edges in pinned.ranges.items()} for side in (0, 1))
    times = "LogAppendTime" if pinned.appended else "CreateTime"
    return {"url": topic.url, "id": pinned.topic_id, "from": starts, "until": ends, "times": times}
