"""Describes what a driver process serves. It gets this at its start or over the wire, and repeats it at hello."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict, Unpack

from streamgauge.base.units import Tick
from streamgauge.config import Offered


class Sent(TypedDict):
    """Columns of a stream that drivers send, and how they deal its rows to partitions.

    line: the original line, too. salted: the key columns of `densify`. partition_by: column that decides the partition.
    """

    tick: Tick
    columns: dict[str, str]  # declared ones
    line: NotRequired[bool]
    salted: NotRequired[Sequence[str]]
    partition_by: NotRequired[str | None]


class Serving(Offered):
    """The part of a replay that one process serves; the processes of a trial differ only in `share`.

    stream: SHA-256 of its rows, as its manifest says. columns: names with their types; None for all. max_memory_mb: of
    this process; it decides which prefix of a large stream is replayed. share: "i/n" for process i of n.
    partition_by: column whose values decide the partition; None: events go to the partitions in turn.
    """

    stream: str = ""
    columns: dict[str, str] | None = None
    line: bool = False
    salted: tuple[str, ...] = ()
    share: str = "0/1"
    partition_by: str | None = None

    @classmethod
    def of(
        cls, offered: Offered, stream: str, share: tuple[int, int], processes: int = 1, **sent: Unpack[Sent]
    ) -> Serving:
        """Returns a share of what is offered. processes: number of those that divide its memory."""
        shared = offered.model_dump(include={*Offered.model_fields})
        shared["max_memory_mb"] = max(1, offered.max_memory_mb // processes)
        keys = tuple(sorted(sent.get("salted", ()))) if offered.densify > 1 else ()
        return cls(
            **shared, stream=stream, columns=dict(sent["columns"]), line=sent.get("line", False), salted=keys,
            share=f"{share[0]}/{share[1]}", partition_by=sent.get("partition_by"),
        )  # fmt: skip

    def to_json(self) -> dict[str, object]:
        """Returns the JSON object that is sent over the wire."""
        return self.model_dump(mode="json")

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
            case "partition_by" if mine is None:
                return "without --partition-by"
        return f"with --{name.replace('_', '-')} {','.join(self.columns or ()) if name == 'columns' else mine}"


def _short(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, dict | list) else str(value)
    return text[:200] or "none"
