with begun as (
    select *, coalesce(at_us > lag(at_us) over person + {window_us}, true)::int as begins from bid
    window person as (partition by bidder order by at_us, seq)
), numbered as (
    select *, sum(begins) over (partition by bidder order by at_us, seq) as session from begun
)
select make_timestamp(min(at_us)) as window_start, make_timestamp(max(at_us) + {window_us}) as window_end, bidder, count(*) as bids
from numbered group by bidder, session
