select auction, bidder, price, channel, url, event_ts, extra from bid
