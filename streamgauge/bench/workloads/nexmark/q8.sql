with joined as (
    select distinct id, name, begin_of(at_us, {window_us}, {offset_us}) as w from person
), opened as (
    select seller, begin_of(at_us, {window_us}, {offset_us}) as w, count(*) as auctions from auction group by all
)
select make_timestamp(w) as window_start, make_timestamp(w + {window_us}) as window_end, id, name, auctions
from joined j join opened o using (w) where j.id = o.seller
