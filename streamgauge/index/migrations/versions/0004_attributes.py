"""Identifies a machine by label, CPU and cores; operating system and memory become attributes of each point.

Series that an update of the kernel had cut in two become one again. There is no way back but `results rebuild`.
"""

import hashlib
import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
_MEASURED = ("benchmark", "experiment", "workload", "system", "mode", "metric", "unit")
_IDENTITY = ("host", "cpu", "cores")


def upgrade() -> None:
    bind = op.get_bind()
    tables = sa.MetaData()
    series, points, judgements = (
        sa.Table(name, tables, autoload_with=bind, resolve_fks=False) for name in ("series", "points", "judgements")
    )
    for row in bind.execute(sa.select(series)).mappings().all():
        machine = json.loads(row["machine"])
        own = {name: machine[name] for name in _IDENTITY if machine.get(name) is not None}
        rest = {name: value for name, value in machine.items() if name not in _IDENTITY}
        old, key = row["key"], _hash([*(row[name] for name in _MEASURED), own])
        if bind.execute(sa.select(series.c.key).where(series.c.key == key)).first() is None:
            bind.execute(sa.insert(series).values({**row, "key": key, "machine": _canonical(own)}))
        here = points.c.series_key == old
        for (software,) in bind.execute(sa.select(points.c.software).where(here).distinct()).all():
            change = {"software": _canonical({**json.loads(software), **rest}), "series_key": key}
            bind.execute(sa.update(points).where(here, points.c.software == software).values(change))
        bind.execute(sa.update(judgements).where(judgements.c.series_key == old).values(series_key=key))
        if old != key:
            bind.execute(sa.delete(series).where(series.c.key == old))


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _hash(value: Any) -> str:
    return hashlib.sha256(_canonical(value).encode()).hexdigest()[:16]
