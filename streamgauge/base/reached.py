"""Name of what a benchmark file reaches beyond itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Reached:
    """Something beyond a benchmark file that a run of it imports, starts, connects to, reads, or shows to others.

    key: of the file. name: a module, a command, an address, a variable, or what a secret stands in.
    """

    kind: Literal["code", "program", "host", "variable", "secret"]
    key: str
    name: str
