select bidder, count(*) as bids from bid group by bidder
