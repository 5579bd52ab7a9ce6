select distinct make_timestamp(window_start) as window_start, make_timestamp(window_start + {length_us}) as window_end, key
from windows
