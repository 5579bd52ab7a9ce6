select auction, seller, category, expires, bidder, price, at_us from winner
