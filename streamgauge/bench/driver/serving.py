"""Describes what a driver process serves: it is sent at hello, and compared with what a benchmark wants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from streamgauge.config import Replay


@dataclass(frozen=True)
class Serving:
    """The part of a replay that one process serves; the processes of a trial differ only in `share`."""

    stream: str  # SHA-256 of its rows, as its manifest says
    columns: dict[str, str]
    line: bool
    salted: tuple[str, ...]
    mode: str
    profile: str
    partitions: int
    densify: int
    queue_seconds: float
    max_memory_mb: int  # decides which prefix of a large stream is replayed
    share: str  # i/n

    @classmethod
    def of(
        cls, replay: Replay, stream: str, columns: dict[str, str], line: bool, salted: Sequence[str], share: str
    ) -> Serving:
        return cls(
            stream, columns, line, tuple(sorted(salted)) if replay.densify > 1 else (),
            replay.mode, replay.profile, replay.partitions, replay.densify, replay.queue_seconds,
            max(1, replay.max_memory_mb // replay.shares), share,
        )  # fmt: skip

    def told(self) -> dict[str, Any]:
        """Returns the JSON object that is sent over the wire."""
        return asdict(self) | {"salted": list(self.salted)}

    def differences(self, told: dict[str, Any]) -> Iterator[str]:
        """Yields a line for each difference from what another process serves, with the option that corrects it."""
        for name, mine in self.told().items():
            if told.get(name) != mine:
                yield f"its {name} is {_short(told.get(name))}; restart it {self._option(name)}"

    def _option(self, name: str) -> str:
        if name == "stream":
            return f"with the directory of the stream {self.stream[:16]}"
        if name == "line":
            return "with --line" if self.line else "without --line"
        if name == "salted":
            return f"with {' '.join(f'--salt {column}' for column in self.salted)}" if self.salted else "without --salt"
        value = ",".join(self.columns) if name == "columns" else getattr(self, name)
        return f"with --{name.replace('_', '-')} {value}"


def _short(value: Any) -> str:
    text = ",".join(value) if isinstance(value, dict | list) else str(value)
    return text[:200] or "none"
