select category, count(*) as sales, sum(price)::bigint as total, sum(price)::double / count(*) as average
from winner group by category
