select b.seq as b_seq, b.auction as b_auction, b.bidder as b_bidder, b.price as b_price, b.channel as b_channel,
    b.url as b_url, b.event_ts as b_event_ts, a.name as a_name, a.category as a_category, a.seller as a_seller,
    p.name as p_name, p.city as p_city, p.state as p_state
from bid b join auction a on b.auction = a.id and abs(b.at_us - a.at_us) <= {window_us}
join person p on b.bidder = p.id and abs(b.at_us - p.at_us) <= {window_us}
