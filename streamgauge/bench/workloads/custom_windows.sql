with own as (
    select *, window_start + {length_us} - {window_us} as own_start from windows
)
select make_timestamp(own_start) as window_start, make_timestamp(own_start + {window_us}) as window_end, key,
    count(*) as events, count(*) filter (marked) as failures
from own where marked or at_us >= own_start group by own_start, key
