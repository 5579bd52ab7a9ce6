"""Templates of a job's commands, whose places are filled for each trial, and the commands that bring faults about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from streamgauge.base.field_types import Model
from streamgauge.bench.driver.system import Fault


class Places(Model):
    """Values of the places in the commands, the environment and the progress."""

    bootstrap: str
    input: str
    output: str
    group: str
    attempt: str
    work: str
    version: str


PLACES = tuple(Places.model_fields)
#: seconds within which a command that brings a fault about has to end
FAULT_S = 60.0
_PLACE = re.compile(r"\{([a-z]+)\}")
#: why a trial of a job does not take a fault whose command is not declared
_SPARED: dict[Fault, str] = {
    "restart": "its command starts what runs within it; a command that kills a worker is declared by faults.restart",
    "rescale": "its command alone knows its parallelism; a command that changes it is declared by faults.rescale",
    "cut": "a broker, which is not ours to cut, stands between driver and job; commands that cut its network and mend "
    "it are declared by faults.cut and faults.heal",
}


def filled(text: str, places: Places) -> str:
    """The text with its places filled; other braces stay."""
    values = places.model_dump()
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), text)


def _known_places(text: str) -> str:
    for place in _PLACE.findall(text):
        if place not in PLACES:
            raise ValueError(f"found {{{place}}}, allowed: {', '.join(f'{{{name}}}' for name in PLACES)}")
    return text


Template = Annotated[str, AfterValidator(_known_places)]
Words = Annotated[tuple[Template, ...], Field(min_length=1)]


class JobFaults(Model):
    """Commands that bring faults about in the middle of a trial. Their places are those of the job's command."""

    kill: Words | None = Field(
        default=None, description="kills what of the job runs elsewhere; then all processes of its command get SIGKILL"
    )
    start: Words | None = Field(
        default=None, description="runs in place of the job's command after a kill; by default that is started again"
    )
    restart: Words | None = Field(default=None, description="kills a worker, which the job starts again by itself")
    cut: Words | None = Field(default=None, description="cuts the job's network")
    heal: Words | None = Field(default=None, description="mends it, recovery.cut_seconds later")
    rescale: Words | None = Field(
        default=None, description="lets the job go on with twice the parallelism, and ends once it does"
    )

    @model_validator(mode="after")
    def _healed(self) -> Self:
        if (self.cut is None) != (self.heal is None):
            raise ValueError("give cut and heal, both of them or none")
        return self

    @property
    def commands(self) -> dict[str, Sequence[str]]:
        """Declared commands by their keys."""
        return {name: words for name, words in self if words is not None}

    @property
    def taken(self) -> frozenset[Fault]:
        """Faults that the job takes in the middle of a trial."""
        return frozenset({"kill", "quota", *(fault for fault in _SPARED if fault in self.commands)})

    @property
    def longest_s(self) -> dict[str, float]:
        """Seconds that the commands of a fault may take: heal may run in its trial, at its end, and before the next."""
        return {key: FAULT_S * (4 if key == "cut" else 1) for key in self.commands}

    @property
    def spared(self) -> dict[Fault, str]:
        """Reasons why it takes no other fault."""
        return {fault: why for fault, why in _SPARED.items() if fault not in self.taken}
