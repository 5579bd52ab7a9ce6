select auction, bidder, price * 89 // 100 as price, event_ts, extra from bid
