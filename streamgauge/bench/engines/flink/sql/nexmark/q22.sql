select auction, bidder, price, channel,
    split_index(url, '/', 3) as dir1, split_index(url, '/', 4) as dir2, split_index(url, '/', 5) as dir3,
    event_wall, offered_wall
from bid
