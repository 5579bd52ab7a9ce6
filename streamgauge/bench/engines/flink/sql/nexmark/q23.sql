select b.seq as b_seq, b.auction as b_auction, b.bidder as b_bidder, b.price as b_price, b.channel as b_channel,
    b.url as b_url, b.at_us as b_event_ts, a.name as a_name, a.category as a_category, a.seller as a_seller,
    p.name as p_name, p.city as p_city, p.state as p_state,
    greatest(b.event_wall, a.event_wall, p.event_wall) as event_wall,
    greatest(b.offered_wall, a.offered_wall, p.offered_wall) as offered_wall
from bid b join auction a on b.auction = a.id
    and a.rowtime between b.rowtime - {window} and b.rowtime + {window} and abs(b.at_us - a.at_us) <= {window_us}
join person p on b.bidder = p.id
    and p.rowtime between b.rowtime - {window} and b.rowtime + {window} and abs(b.at_us - p.at_us) <= {window_us}
