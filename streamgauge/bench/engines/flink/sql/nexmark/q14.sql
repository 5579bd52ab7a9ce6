with timed as (
    select *, price * 89 / 100 as euros, extract(hour from rowtime) as `hour` from bid
)
select auction, bidder, euros as price, at_us as event_ts, extra, count_char(extra, 'c') as c_counts,
    case when `hour` between 8 and 18 then 'dayTime' when `hour` <= 6 or `hour` >= 20 then 'nightTime' else 'otherTime' end
        as bid_time_type,
    event_wall, offered_wall
from timed where euros > 1000000 and euros < 50000000
