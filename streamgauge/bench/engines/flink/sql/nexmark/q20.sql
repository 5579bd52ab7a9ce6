select b.auction as b_auction, b.bidder as b_bidder, b.price as b_price, b.channel as b_channel, b.url as b_url,
    b.extra as b_extra, b.at_us as b_event_ts, a.name as a_name, a.description as a_description,
    a.initial_bid as a_initial_bid, a.reserve as a_reserve, a.expires as a_expires, a.seller as a_seller,
    a.category as a_category, a.at_us as a_event_ts,
    greatest(b.event_wall, a.event_wall) as event_wall, greatest(b.offered_wall, a.offered_wall) as offered_wall
from bid b join auction a on b.auction = a.id
    and a.rowtime between b.rowtime - {window} and b.rowtime + {window} and abs(b.at_us - a.at_us) <= {window_us}
where a.category = 10
