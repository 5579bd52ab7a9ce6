"""Time units and durations in exact integers; only what is shown to people is rounded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Context, Decimal
from typing import Literal

TimeUnit = Literal["ps", "ns", "us", "ms", "s"]
Tick = Literal["ns", "ps"]

#: picoseconds in one unit
PS: dict[str, int] = {
    "ps": 1,
    "ns": 10**3,
    "us": 10**6,
    "ms": 10**9,
    "s": 10**12,
    "m": 60 * 10**12,
    "min": 60 * 10**12,
    "h": 3600 * 10**12,
    "d": 86400 * 10**12,
}
TIME_UNITS: tuple[TimeUnit, ...] = ("ps", "ns", "us", "ms", "s")
_DURATION = re.compile(r"(-?\d+(?:\.\d+)?)\s*([a-z]+)")


def tick_of(unit: TimeUnit | None) -> Tick:
    """The unit in which event times of a source are kept: ps for a ps source, else ns."""
    return "ps" if unit == "ps" else "ns"


def ticks_per_second(tick: Tick) -> int:
    return PS["s"] // PS[tick]


@dataclass(frozen=True, order=True)
class Duration:
    """A length of time in whole picoseconds."""

    ps: int

    @classmethod
    def parse(cls, text: object) -> Duration:
        """Parses text such as '2s', '0ms', '1.5h' or '250us'. Raises ValueError saying what is allowed."""
        if isinstance(text, Duration):
            return text
        match = _DURATION.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None or match[2] not in PS:
            raise ValueError(f"found {text!r}, allowed: a number and one of {' '.join(PS)}, such as 2s or 1.5h")
        ps = Decimal(match[1]) * PS[match[2]]
        if ps != int(ps):
            raise ValueError(f"found {text!r}, which is not a whole number of picoseconds")
        return cls(int(ps))

    def to(self, unit: str) -> int:
        """The duration in that unit. Raises ValueError when it is not a whole number of them."""
        if self.ps % PS[unit]:
            raise ValueError(f"{self} is not a whole number of {unit}")
        return self.ps // PS[unit]

    @property
    def seconds(self) -> float:
        return self.ps / PS["s"]

    def __str__(self) -> str:
        for unit in ("d", "h", "m", "s", "ms", "us", "ns"):
            if self.ps and self.ps % PS[unit] == 0:
                return f"{self.ps // PS[unit]}{unit}"
        return f"{self.ps}ps" if self.ps else "0s"


def show_ticks(value: float, tick: Tick) -> str:
    """A number of ticks as readable text, such as '2.5 s' or '90 min'."""
    seconds = value * PS[tick] / PS["s"]
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= size * (2 if size > 1 else 1):
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns" if value else "0 s"


def show_enough(ticks: int, tick: Tick) -> str:
    """Ticks, 0 or more, as readable text of at most four digits, rounded up, such as '3.005 s' for 3.0041 s."""
    ps = ticks * PS[tick]
    sizes = (("d", 2), ("h", 2), ("min", 2), ("s", 1), ("ms", 1), ("us", 1), ("ns", 1), ("ps", 0))
    unit = next(unit for unit, least in sizes if ps >= least * PS[unit])
    rounded = Context(prec=4, rounding=ROUND_CEILING).divide(Decimal(ps), Decimal(PS[unit]))
    return f"{rounded.normalize():f} {unit}" if ps else "0 s"


def show_about(value: float, tick: Tick) -> str:
    """An approximate number of ticks as readable text of two digits, such as '60 min' for 59.83 min."""
    number, unit = show_ticks(value, tick).split()
    return f"{float(f'{float(number):.2g}'):g} {unit}"


def moment(ticks: int, tick: Tick) -> str:
    """An event time as ISO-8601 in UTC, such as 2013-01-01T10:15:00.250Z; the number beyond the years 1 to 9999."""
    seconds, rest = divmod(ticks, ticks_per_second(tick))
    try:
        shown = (datetime(1970, 1, 1) + timedelta(seconds=seconds)).isoformat()
    except OverflowError:
        return f"{ticks} {tick}"
    fraction = str(rest).rjust({"ns": 9, "ps": 12}[tick], "0").rstrip("0")
    return f"{shown}{'.' + fraction if fraction else ''}Z"


#: bytes in one unit
BYTES: dict[str, int] = {
    "": 1,
    "B": 1,
    **{f"{prefix}iB": 2 ** (10 * n) for n, prefix in enumerate("KMGT", 1)},
    **{f"{prefix}B": 10 ** (3 * n) for n, prefix in enumerate("kMGT", 1)},
}


def parse_bytes(text: object) -> int:
    """Number of bytes of a size such as '20GiB', '500 MB' or 4096. Raises ValueError saying what is allowed."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", str(text).strip())
    if isinstance(text, bool) or match is None or match[2] not in BYTES:
        raise ValueError(f"found {text!r}, allowed: a size such as 500MB or 20GiB")
    return int(Decimal(match[1]) * BYTES[match[2]])
