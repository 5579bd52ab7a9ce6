select make_timestamp(window_start) as window_start, make_timestamp(window_start + {length_us}) as window_end, key,
    min(number) as smallest, max(number) as largest
from windows group by all
