select make_timestamp(window_start) as window_start, make_timestamp(window_start + {length_us}) as window_end, key,
    row_number() over best as rank, number as value, seq
from windows window best as (partition by window_start, key order by number desc nulls last, seq) qualify rank <= {top}
