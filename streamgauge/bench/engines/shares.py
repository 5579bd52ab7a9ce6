"""Systems whose processes are a session of this host, and their share of its CPUs: a quota of time, or whole ones."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.system import Adapter, Share
from streamgauge.bench.engines.cgroup import quota_parent
from streamgauge.bench.engines.processes import Led, Session
from streamgauge.config import System


class Given:
    """The share that a system is given, whichever of its sessions runs."""

    def __init__(self, cpus: Collection[int] | None) -> None:
        """Takes the CPUs that the system may use; None: all."""
        here = os.sched_getaffinity(0)
        self._all = sorted(set(cpus or here) & here)
        self._share: Share | None = None

    @property
    def cpus(self) -> list[int]:
        """The CPUs on which its processes run now."""
        share = self._share
        return self._all[: int(share.cpus)] if share is not None and share.whole else self._all

    def change(self, share: Share | None, session: Session | None) -> None:
        """Gives this share from now on. Raises UserError, one line, where this machine does not offer it."""
        if share is not None and share.cpus > len(self._all):
            raise UserError(f"found {share.cpus:g}, allowed: at most {len(self._all)}, as the system has no more CPUs")
        if share is not None and not share.whole:
            quota_parent()
        self._share = share
        if session is not None:
            self._apply(session)

    def begin(self, session: Session) -> None:
        """Gives the share to a session that begins. Raises UserError."""
        if self._share is not None:
            self._apply(session)

    def _apply(self, session: Session) -> None:
        session.pin(self.cpus)
        session.give(None if self._share is None or self._share.whole else self._share.cpus)


class InSession(Adapter):
    """A system whose processes are one session of this host at a time, from a start to the next stop."""

    def __init__(self, system: System, work: Path) -> None:
        super().__init__(system, work)
        self._names_cpus, self._given = bool(system.cpus), Given(system.cpus)

    @property
    @abstractmethod
    def session(self) -> Led | None:
        """The session that runs; None before a start and after a stop."""

    def pin(self) -> None:
        """Pins all its threads to the CPUs that the benchmark names; until then they may compile on any."""
        if self._names_cpus and self.session is not None:
            self.session.pin(self._given.cpus)

    def give(self, share: Share | None) -> None:
        self._given.change(share, self.session)

    def frozen(self) -> AbstractContextManager[None]:
        return nullcontext() if self.session is None else self.session.frozen()

    def cpu_seconds(self) -> float | None:
        return None if self.session is None else self.session.cpu_seconds()

    def vitals(self) -> dict[str, float]:
        """Returns memory and open files."""
        return {} if self.session is None else self.session.vitals()
