with counts as (
    select window_start, auction, count(*) as bids from windows group by all
)
select make_timestamp(window_start) as window_start, make_timestamp(window_start + {window_us}) as window_end, auction, bids
from counts qualify bids = max(bids) over (partition by window_start)
