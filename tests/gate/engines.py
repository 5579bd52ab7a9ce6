"""An engine of known speed that says by itself whether its answers are right."""

from __future__ import annotations

from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.bench.engines.known.known_system import KnownFigures, KnownSystem
from streamgauge.bench.engines.known.settings import KnownSettings
from streamgauge.config.systems import OwnSettings


class Answering(KnownSystem):
    """The known system. wrong: what it finds wrong with its answers. dies: a file; without it, it does not start.

    The attempt makes that file, if its folder is there. killed: each of its processes is killed once it is
    warm, at the second reading of its CPU time.
    """

    def __init__(self, system: OwnSettings, work: Path) -> None:
        keys = dict(system.model_extra or {})
        self._wrong: str | None = keys.pop("wrong", None)
        self._dies: str | None = keys.pop("dies", None)
        self._killed, self._read = keys.pop("killed", False), 0
        super().__init__(KnownSettings.model_validate({"name": system.name, "engine": "known", **keys}), work)

    def start(self) -> None:
        if self._dies and not (file := Path(self._dies)).exists():
            if file.parent.is_dir():
                file.touch()
            raise UserError(f"systems.{self.name}: no license")
        super().start()

    def cpu_seconds(self) -> None:
        self._read += 1
        if self._killed and self._read == 2:
            self.strike("kill")

    def end_trial(self, timeout_s: float) -> KnownFigures:
        return {**super().end_trial(timeout_s), "check": {"wrong": self._wrong}}
