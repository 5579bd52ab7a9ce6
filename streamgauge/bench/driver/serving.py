"""Describes what a driver process serves: it is sent at hello, and compared with what a benchmark wants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON object that is sent over the wire."""
        return asdict(self) | {"salted": list(self.salted)}

    def differences(self, served: Mapping[str, object]) -> Iterator[str]:
        """Yields a line for each difference from what another process serves, with the option that corrects it."""
        for name, mine in self.to_json().items():
            if served.get(name) != mine:
                yield f"its {name} is {_short(served.get(name))}; restart it {self._option(name, mine)}"

    def _option(self, name: str, mine: object) -> str:
        match name:
            case "stream":
                return f"with the directory of the stream {self.stream[:16]}"
            case "line":
                return "with --line" if self.line else "without --line"
            case "salted":
                options = " ".join(f"--salt {column}" for column in self.salted)
                return f"with {options}" if options else "without --salt"
        return f"with --{name.replace('_', '-')} {','.join(self.columns) if name == 'columns' else mine}"


def _short(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, dict | list) else str(value)
    return text[:200] or "none"
