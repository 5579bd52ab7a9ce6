with left_half as (
    select window_start, key, columns('^(seq|value)$') as "left_\0" from left_windows where (at_us + seq) % 2 = 0
), right_half as (
    select window_start, key, columns('^(seq|value)$') as "right_\0" from right_windows where (at_us + seq) % 2 <> 0
)
select make_timestamp(window_start) as window_start, make_timestamp(window_start + {length_us}) as window_end, key,
    columns('^(left|right)_(seq|value)$')
from left_half join right_half using (window_start, key)
