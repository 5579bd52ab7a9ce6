select p.name, p.city, p.state, a.id
from person p join auction a on p.id = a.seller and abs(p.at_us - a.at_us) <= {window_us}
where p.state in ('OR', 'ID', 'CA') and a.category = 10
