select auction, row_number() over best as place, price, at_us, seq, bidder, extra
from bid window best as (partition by auction order by price desc, at_us, seq) qualify place <= {top}
