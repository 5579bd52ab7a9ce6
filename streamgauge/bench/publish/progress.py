"""Progress of a job: by the offsets of its consumer group, or by the checkpoint of a Spark query."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from streamgauge.streams.kafka.clients import Access, Offsets, Topics


@dataclass(frozen=True)
class Reached:
    """Offsets per partition: rows below `planned` are in work, rows below `committed` will not be read again."""

    planned: dict[int, int]
    committed: dict[int, int]
    whole: bool = True  # no further work is known


class Progress(Protocol):
    """A source of a job's progress."""

    def reached(self) -> Reached: ...

    def begun(self) -> bool:
        """True once the job reads the topic, or is about to."""
        ...

    def why(self) -> str:
        """Returns in words why there may be no progress."""
        ...

    def close(self) -> None: ...

    @property
    def name(self) -> str: ...


class Group:
    """The progress that a consumer group commits to the broker."""

    def __init__(self, access: Access, topics: Topics, group: str, topic: str, partitions: int) -> None:
        self._topics, self._group, self._topic, self._partitions = topics, group, topic, partitions
        self._offsets = Offsets(access, group, topic, partitions)
        self.name = f"the consumer group {group}"

    def reached(self) -> Reached:
        offsets = self._offsets.committed()
        return Reached(offsets, offsets)

    def begun(self) -> bool:
        if self._topics.assigned(self._group).get(self._topic) == self._partitions:
            return True
        # Flink commits, but is no member
        return len(self._offsets.committed()) == self._partitions

    def why(self) -> str:
        topics = self._topics.assigned(self._group)
        if self._topic in topics:
            return "its members read that topic: does the job commit?"
        if topics:
            return f"its members read {', '.join(sorted(topics))} instead"
        return "it has no members: does the command get {group} and {input}?"

    def close(self) -> None:
        self._offsets.close()


class Checkpoint:
    """The progress in the checkpoint of a Spark query: its logs `offsets` (planned) and `commits`."""

    def __init__(self, folder: Path, topic: str) -> None:
        self._folder, self._topic = folder, topic
        self.name = f"the checkpoint {folder}"
        self._known: dict[int, dict[int, int]] = {}

    def reached(self) -> Reached:
        done, ahead = self._newest("commits"), self._newest("offsets")
        committed = self._offsets(done) if done is not None else {}
        planned = self._offsets(ahead) if ahead is not None else {}
        return Reached(planned or committed, committed, done == ahead)

    def begun(self) -> bool:
        return self._newest("offsets") is not None

    def why(self) -> str:
        if self._newest("offsets") is None:
            return "there is no log `offsets` in it: does the job write its checkpoint there?"
        return "its log names other topics"

    def close(self) -> None: ...

    def ends(self, line: str) -> dict[int, int]:
        """Offsets of the topic in a line of an offset log, which has a line for each source of the query."""
        try:
            ends: Any = json.loads(line)
        except ValueError:
            return {}
        partitions = ends.get(self._topic) if isinstance(ends, dict) else None
        if not isinstance(partitions, dict):
            return {}
        return {int(partition): offset for partition, offset in partitions.items() if isinstance(offset, int)}

    def _newest(self, log: str) -> int | None:
        with suppress(OSError):
            return max((int(file.name) for file in (self._folder / log).iterdir() if file.name.isdigit()), default=None)
        return None

    def _offsets(self, batch: int) -> dict[int, int]:
        """Ends of a micro-batch in the topic; those known last if its file is gone or half written."""
        if batch not in self._known:
            reached: dict[int, int] = {}
            with suppress(OSError):
                for line in (self._folder / "offsets" / str(batch)).read_text().splitlines():
                    reached = reached or self.ends(line)
            if not reached:
                return self._known[max(self._known)] if self._known else {}
            self._known = {number: ends for number, ends in self._known.items() if number > batch - 100}
            self._known[batch] = reached
        return self._known[batch]
