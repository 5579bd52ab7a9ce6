"""Changes a number among the settings of a system, or of the replay, as a measurement over its values does."""

from __future__ import annotations

import re

from streamgauge.base.errors import UserError
from streamgauge.config.benchmark import Benchmark
from streamgauge.config.mistakes import check

#: the number that a text begins with, such as 2g, or that opens its brackets, such as local[2]
_NUMBER = re.compile(r"((?:^|\[))\d+")
#: the one setting that may be changed and is none of a system
PARTITIONS = "replay.partitions"
#: keys of a system that hold further settings by their names, of which one need not be there
_GROUPS = ("conf", "environment")


def with_setting(benchmark: Benchmark, system: str, setting: str, value: int) -> Benchmark:
    """Returns the benchmark with that number in a setting of the system. Raises UserError if it has no such setting.

    setting: a key, or one of a group of keys, such as conf.spark.sql.shuffle.partitions.
    """
    if setting == PARTITIONS:
        return benchmark.model_copy(update={"replay": benchmark.replay.model_copy(update={"partitions": value})})
    model = benchmark.system(system)
    given = model.model_dump()
    group, _, name = setting.partition(".")
    inner = given.get(group)
    if name and group in _GROUPS and isinstance(inner, dict):
        given[group] = {**inner, name: _changed(inner.get(name, "0"), value)}
        changed = given[group][name]
    else:
        changed = given[setting] = _changed(given.get(setting), value)
    if changed is None:
        keys = [key for key, old in given.items() if _changed(old, value) is not None]
        groups = [f"{key}.…" for key in _GROUPS if isinstance(given.get(key), dict)]
        allowed = ", ".join([*keys, *groups, PARTITIONS])
        raise UserError(f"scaling.setting: found {setting!r}, allowed for systems.{system}: {allowed}")
    new = check(type(model), given, lambda path: ".".join(map(str, (f"systems.{system}", *path))))
    return benchmark.model_copy(
        update={"systems": tuple(new if one.name == system else one for one in benchmark.systems)}
    )


def _changed(old: object, value: int) -> int | str | None:
    """Returns what stands there with another number in it; None where there is no number."""
    if isinstance(old, str):
        new, count = _NUMBER.subn(rf"\g<1>{value}", old, count=1)
        return new if count else None
    return value if isinstance(old, int | float) and not isinstance(old, bool) else None
