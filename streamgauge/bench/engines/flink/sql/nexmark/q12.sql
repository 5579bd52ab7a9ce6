select bidder, count(*) as bids, max(event_wall) as event_wall, max(offered_wall) as offered_wall
from table(tumble(table bid, descriptor(proctime), {window}))
group by window_start, window_end, bidder
