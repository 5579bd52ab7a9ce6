with highest as (
    select window_time, max(number) as number,
        max(event_wall) as event_wall, max(offered_wall) as offered_wall
    from table(tumble(table events, descriptor(rowtime), {window}, {offset}))
    group by window_start, window_end, window_time, `key`
)
select window_start, window_end, count(*) as `groups`, sum(number) as total,
    max(event_wall) as event_wall, max(offered_wall) as offered_wall
from table(tumble(table highest, descriptor(window_time), {two_windows}, {offset}))
group by window_start, window_end
