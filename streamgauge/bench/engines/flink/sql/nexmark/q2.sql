select auction, price, event_wall, offered_wall from bid where mod(auction, 123) = 0
