"""An engine of known speed that says by itself whether its answers are right."""

from __future__ import annotations

from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.bench.engines.known.known_system import KnownFigures, KnownSystem
from streamgauge.bench.engines.known.settings import KnownSettings
from streamgauge.config.systems import OwnSettings


class Answering(KnownSystem):
    """The known system. wrong: what it finds wrong with its answers. dies: it does not start."""

    def __init__(self, system: OwnSettings, work: Path) -> None:
        keys = dict(system.model_extra or {})
        self._wrong: str | None = keys.pop("wrong", None)
        self._dies: bool = keys.pop("dies", False)
        super().__init__(KnownSettings.model_validate({"name": system.name, "engine": "known", **keys}), work)

    def start(self) -> None:
        if self._dies:
            raise UserError(f"systems.{self.name}: no license")
        super().start()

    def end_trial(self, timeout_s: float) -> KnownFigures:
        return {**super().end_trial(timeout_s), "check": {"wrong": self._wrong}}
