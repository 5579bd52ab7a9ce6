select seller, auction, count(*) over recent as sales, (sum(price) over recent)::double / count(*) over recent as average
from winner window recent as (partition by seller order by expires, auction rows between 9 preceding and current row)
