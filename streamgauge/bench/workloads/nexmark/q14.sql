with timed as (
    select *, price * 89 // 100 as euros, hour(make_timestamp(at_us)) as hour from bid
)
select auction, bidder, euros as price, event_ts, extra, length(extra) - length(replace(extra, 'c', '')) as c_counts,
    case when hour between 8 and 18 then 'dayTime' when hour <= 6 or hour >= 20 then 'nightTime' else 'otherTime' end as bid_time_type
from timed where euros > 1000000 and euros < 50000000
