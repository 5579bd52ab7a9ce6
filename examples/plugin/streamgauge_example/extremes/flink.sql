select window_start, window_end, `key`, min(number) as smallest, max(number) as largest,
    max(event_wall) as event_wall, max(offered_wall) as offered_wall
from table(tumble(table events, descriptor(rowtime), {window}, {offset}))
group by window_start, window_end, `key`
