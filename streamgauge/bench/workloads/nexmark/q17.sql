select auction, strftime(make_timestamp(at_us), '%Y-%m-%d') as day, count(*) as total_bids,
    count(*) filter (price < 10000) as rank1_bids,
    count(*) filter (price >= 10000 and price < 1000000) as rank2_bids,
    count(*) filter (price >= 1000000) as rank3_bids,
    min(price) as min_price, max(price) as max_price,
    sum(price)::double / count(*) as avg_price, sum(price)::bigint as sum_price
from bid group by auction, day
