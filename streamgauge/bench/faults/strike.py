"""A strike: brings a fault about at an instant of a trial, and sees to it that the system goes on."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.conversation import LOOK_S, Ended
from streamgauge.bench.driver.schedule import NS
from streamgauge.bench.driver.system import Adapter, Capabilities, Endpoint, Fault, NotStruck
from streamgauge.bench.faults.link import Link
from streamgauge.records.driver import DriverFigures

#: for so long the driver still reads, on a busy host, what a system had sent before it was killed or cut off, and a
#: broker's client sees what had been committed; no system starts again in that time
IN_FLIGHT_S = 0.2
log = logging.getLogger("streamgauge")


class Strike:
    """A fault at an instant of a trial, in seconds since its start; given to one trial.

    The trial calls it whenever it looks at the driver, and nobody asks whether the system lives until it returns.
    struck_s: when the fault began, in seconds since the start; None unless it was brought about. resumed_s: when the
    system was asked to go on, or the link was mended. failure: why it did not go on; empty if it did. missed: why the
    fault was not brought about; empty if it was.
    """

    def __init__(self, fault: Fault, at_s: float, cut_s: float = 0.0, *, cuts_itself: bool = False) -> None:
        """cut_s: so long is the link away, if the fault is `cut`. cuts_itself: the system cuts something else then."""
        self.fault, self._at_s, self._cut_s = fault, at_s, cut_s
        self._cuts_link = fault == "cut" and not cuts_itself
        self.struck_s: float | None = None
        self.resumed_s: float | None = None
        self.failure = self.missed = ""
        self._over_s = 0.0  # when it had been brought about
        self._links: tuple[Link, ...] = ()

    @property
    def away_s(self) -> float:
        """Instant by which the old query had stopped, in seconds since the start; a rescaled one goes on until it."""
        if self.fault == "kill":
            return self._over_s + IN_FLIGHT_S
        if self.fault == "cut":
            return self._over_s + min(IN_FLIGHT_S, self._cut_s)
        return (self.resumed_s if self.fault == "rescale" else self._over_s) or 0.0

    @contextmanager
    def between(self, endpoints: tuple[Endpoint, ...]) -> Iterator[tuple[Endpoint, ...]]:
        """Yields the endpoints that the system is given in this trial: those of links, if they shall be cut."""
        with ExitStack() as stack:
            if self._cuts_link:
                self._links = tuple(stack.enter_context(Link(one, self._cut_s)) for one in endpoints)
            yield tuple(link.endpoint for link in self._links) or endpoints

    def __call__(self, system: Adapter, _work: Path, drivers: Sequence[DriverFigures]) -> None:
        """Strikes once its instant has come. Raises Ended if the system does not come up again."""
        if self.struck_s is not None or {driver["state"] for driver in drivers} != {"started"}:
            return
        begun_ns = min(driver["start_wall_ns"] for driver in drivers)
        left_s = self._at_s - (time.time_ns() - begun_ns) / NS
        if left_s > 2 * LOOK_S:
            return
        try:
            system.brace(self.fault)
            time.sleep(max(0.0, self._at_s - (time.time_ns() - begun_ns) / NS))
            self._strike(system, begun_ns)
        except (UserError, OSError) as problem:
            raise Ended(self._failed(problem)) from None

    def _failed(self, problem: Exception) -> str:
        """Says why the trial ends: for the system's own failure, if its fault has happened."""
        if self.struck_s is None or isinstance(problem, NotStruck):
            self.struck_s, self.missed = None, f"the fault {self.fault} was not brought about: {problem}"
            return self.missed
        self.failure = f"it did not go on after the fault {self.fault}: {problem}"
        return self.failure

    def _strike(self, system: Adapter, begun_ns: int) -> None:
        def now() -> float:
            return (time.time_ns() - begun_ns) / NS

        struck_s = now()
        for link in self._links:
            link.cut()
        if self.fault != "rescale" and not self._cuts_link:
            system.strike(self.fault)
        self.struck_s, self._over_s = struck_s, now()
        log.info("  %s after %.1f s", self.fault, self.struck_s)
        if self.fault == "cut":
            time.sleep(self._cut_s)
            try:
                for link in self._links:
                    link.mend()
            except OSError as problem:
                raise NotStruck(f"the link cannot be mended: {problem}") from None
        if self.fault == "rescale":
            system.rescale()
        elif self.fault != "restart" and not self._cuts_link:
            system.resume()
        if self.fault in ("kill", "rescale"):
            system.pin()  # the new process shall have no more CPUs than the one before
        self.resumed_s = now()


def spared(capabilities: Capabilities, fault: Fault) -> str:
    """Says why a system does not take a fault; empty if it does."""
    if fault in capabilities.faults:
        return ""
    return capabilities.spared.get(fault, "its adapter does not declare this fault")
