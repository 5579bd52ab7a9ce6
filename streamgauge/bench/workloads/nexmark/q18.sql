select bidder, auction, at_us, seq, price, channel, url, extra
from bid qualify row_number() over (partition by bidder, auction order by at_us desc, seq desc) = 1
