with highest as (
    select window_start, key, max(number) as number from windows group by window_start, key
), pairs as (
    select *, begin_of(window_start, 2 * {window_us}, {offset_us}) as pair_start from highest
)
select make_timestamp(pair_start) as window_start, make_timestamp(pair_start + 2 * {window_us}) as window_end,
    count(*) as groups, sum(number)::bigint as total
from pairs group by pair_start
