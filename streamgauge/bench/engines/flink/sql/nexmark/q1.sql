select auction, bidder, price * 89 / 100 as price, at_us as event_ts, extra, event_wall, offered_wall from bid
