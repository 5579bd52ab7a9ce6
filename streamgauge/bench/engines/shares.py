"""Gives the sessions of a system a share of the machine's CPUs: a quota of their time, or so many whole ones."""

from __future__ import annotations

import os
from collections.abc import Collection

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.system import Share
from streamgauge.bench.engines.cgroup import quota_parent
from streamgauge.bench.engines.processes import Session


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
