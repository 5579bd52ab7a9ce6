"""What DuckDB answers to the hard queries, for integer values. Columns as the queries name them; times in us."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from streamgauge.errors import UserError
from streamgauge.workloads import Spec

_SQL = {
    "custom_windows": """
        select t // {w} * {w} + {w} * lag as window_start, t // {w} * {w} + {w} * (lag + 1) as window_end, key,
               count(*) as events, count(*) filter (where marked) as failures
        from events, unnest(range(4)) as lags(lag) where lag = 0 or marked group by all""",
    "chained_windows": """
        with first as (select (t - {o}) // {w} as n, key, max(value) as highest from events group by all)
        select n // 2 * 2 * {w} + {o} as window_start, (n // 2 + 1) * 2 * {w} + {o} as window_end,
               count(*) as groups, sum(highest)::bigint as total
        from first group by n // 2""",
    "top_n": """
        with ranked as (
            select t // {w} * {w} as window_start, window_start + {w} as window_end, key, value, seq,
                   row_number() over (partition by t // {w}, key order by value desc, seq) as rank
            from events)
        from ranked where rank <= {top}""",
    "sessions": """
        with marked as (select *, t - lag(t) over (partition by key order by t, seq) > {w} as apart from events),
        numbered as (
            select *, count(*) filter (where apart) over (partition by key order by t, seq) as n from marked)
        select min(t) as window_start, max(t) + {w} as window_end, key, count(*) as events, sum(value)::bigint as total
        from numbered group by key, n""",
    "deduplication": "select distinct t // {w} * {w} as window_start, window_start + {w} as window_end, key from events",
    "outer_join": """
        with halves as (select *, t // {w} * {w} as window_start, (t + seq) % 2 as half from events)
        select window_start, window_start + {w} as window_end, key, a.seq as left_seq, b.seq as right_seq,
               a.value as left_value, b.value as right_value
        from (from halves where half = 0) a left join (from halves where half = 1) b using (window_start, key)""",
    "incremental_join": """
        select p.key, p.seq as person_seq, a.seq as auction_seq
        from events p join events a using (key) where p.marked and not a.marked and abs(p.t - a.t) < {w}""",
}


def duckdb_answer(spec: Spec, events: pa.Table) -> pa.Table:
    """events: columns seq, event_time (ns), and those that the spec names."""
    if spec.query not in _SQL:
        raise UserError(f"query: found {spec.query}, allowed: {', '.join(_SQL)}")
    base = duckdb.connect()
    base.register("given", events.drop_columns(["event_ts"]))
    value = f'"{spec.value}"' if spec.value else "null"
    mark = f"coalesce({value}::text = '{spec.mark}', false)"
    base.execute(
        f'create view events as select seq, event_time // 1000 as t, "{spec.key}" as key, {value} as value,'
        f" {mark} as marked from given"
    )
    return base.sql(_SQL[spec.query].format(w=spec.window_us, o=spec.offset_us, top=spec.top)).to_arrow_table()
