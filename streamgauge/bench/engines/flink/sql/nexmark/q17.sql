select auction, date_format(rowtime, 'yyyy-MM-dd') as `day`, count(*) as total_bids,
    count(*) filter (where price < 10000) as rank1_bids,
    count(*) filter (where price >= 10000 and price < 1000000) as rank2_bids,
    count(*) filter (where price >= 1000000) as rank3_bids,
    min(price) as min_price, max(price) as max_price,
    cast(sum(price) as double) / cast(count(*) as double) as avg_price, sum(price) as sum_price,
    max(event_wall) as event_wall, max(offered_wall) as offered_wall
from bid group by auction, date_format(rowtime, 'yyyy-MM-dd')
