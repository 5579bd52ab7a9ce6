select auction, bidder, price, event_ts, extra,
    strftime(make_timestamp(at_us), '%Y-%m-%d') as day, strftime(make_timestamp(at_us), '%H:%M') as minute
from bid
