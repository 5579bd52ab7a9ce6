select auction, bidder, price, at_us as event_ts, side.`value`, event_wall, offered_wall
from bid, lateral table(side_input(mod(auction, 10000))) as side(`value`)
