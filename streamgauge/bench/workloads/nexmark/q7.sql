select make_timestamp(window_start) as window_start, make_timestamp(window_start + {window_us}) as window_end,
    price, auction, bidder, event_ts as bid_ts
from windows qualify price = max(price) over (partition by window_start)
