select bidder, auction, at_us, seq, price, channel, url, extra, event_wall, offered_wall
from (select *, row_number() over (partition by bidder, auction order by at_us desc, seq desc) as place from bid)
where place = 1
