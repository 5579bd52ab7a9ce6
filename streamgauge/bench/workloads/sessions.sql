with begun as (
    select *, coalesce(at_us > lag(at_us) over same + {window_us}, true)::int as begins from events
    window same as (partition by key order by at_us, seq)
), numbered as (
    select *, sum(begins) over (partition by key order by at_us, seq) as session from begun
)
select make_timestamp(min(at_us)) as window_start, make_timestamp(max(at_us) + {window_us}) as window_end, key,
    count(*) as events, sum(number)::bigint as total
from numbered group by key, session
