"""Late rules of all engines as their adapters declare them, without a system, a query or an engine that runs."""

from __future__ import annotations

from streamgauge.base.errors import UserError
from streamgauge.base.plugins import loaded
from streamgauge.bench.driver.system import Adapter
from streamgauge.config.systems import ENGINES, settings_of
from streamgauge.records.rules import EngineRules


def late_rules() -> tuple[EngineRules, ...]:
    """Returns the rules of the built-in engines, then of registered ones. Raises UserError for any that is no rule."""
    rules = []
    for engine in ENGINES.names():
        where, place = f"engines.{engine}", settings_of(engine).adapter
        adapter = loaded(place, where) if place else ENGINES.load(engine, where)
        if not (isinstance(adapter, type) and issubclass(adapter, Adapter)):
            continue  # it is refused once a file names it
        declared: object = adapter.late_rules
        if not isinstance(declared, EngineRules | None):
            raise UserError(f"{where}: late_rules: found {declared!r:.80}, allowed: EngineRules(…)")
        if declared is not None:
            rules.append(declared)
    return tuple(rules)
