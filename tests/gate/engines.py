"""An engine of known speed that says by itself whether its answers are right."""

from __future__ import annotations

from pathlib import Path

from streamgauge.bench.engines.known.known_system import KnownFigures, KnownSystem
from streamgauge.bench.engines.known.settings import KnownSettings
from streamgauge.config.systems import OwnSettings


class Answering(KnownSystem):
    """The known system; `wrong` is what it finds wrong with its answers, or "dies" for one that does not start."""

    def __init__(self, system: OwnSettings, work: Path) -> None:
        keys = {**system.model_extra} if system.model_extra else {}
        self._wrong = keys.pop("wrong", None)
        super().__init__(KnownSettings.model_validate({"name": system.name, "engine": "known", **keys}), work)

    def end_trial(self, timeout_s: float) -> KnownFigures:
        figures = super().end_trial(timeout_s)
        return KnownFigures(**figures, check={"wrong": self._wrong})
