select b.auction as b_auction, b.bidder as b_bidder, b.price as b_price, b.channel as b_channel, b.url as b_url,
    b.extra as b_extra, b.event_ts as b_event_ts, a.name as a_name, a.description as a_description,
    a.initial_bid as a_initial_bid, a.reserve as a_reserve, a.expires as a_expires, a.seller as a_seller,
    a.category as a_category, a.event_ts as a_event_ts
from bid b join auction a on b.auction = a.id and abs(b.at_us - a.at_us) <= {window_us}
where a.category = 10
