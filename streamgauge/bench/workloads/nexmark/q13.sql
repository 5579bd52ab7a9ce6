select auction, bidder, price, event_ts, 'side-' || (auction % 10000) as value from bid
