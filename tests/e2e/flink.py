"""Flink as tests start it: with the settings that the suites take, and reads that may pass a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from streamgauge.bench.answers import wire_suite
from streamgauge.bench.answers.systems import named
from streamgauge.bench.driver.system import TrialSetup
from streamgauge.bench.engines.flink.flink_system import FlinkSystem
from streamgauge.bench.engines.flink.settings import FlinkSettings
from tests.driver.proxy import Proxy


class Proxied(FlinkSystem):
    """Reads through a proxy if there is one; the controller does not."""

    proxy: Proxy | None = None

    def begin_trial(self, setup: TrialSetup) -> None:
        super().begin_trial(replace(setup, endpoints=(self.proxy.endpoint,)) if self.proxy else setup)


class ProxiedSettings(FlinkSettings):
    adapter = f"{__name__}:Proxied"


@contextmanager
def started(work: Path, **settings: Any) -> Iterator[Proxied]:
    given = {**named("flink").model_dump(), "memory": "1536m", **settings}
    with wire_suite.started(ProxiedSettings.model_validate(given), work) as made:
        yield cast(Proxied, made)
