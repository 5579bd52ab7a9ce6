select make_timestamp(window_start) as window_start, make_timestamp(window_start + {length_us}) as window_end, key,
    count(*) as events, sum(number)::bigint as total, sum(number)::bigint::double / count(*)::double as mean
from windows group by window_start, key
