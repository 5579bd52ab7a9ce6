select p.name, p.city, p.state, a.id,
    greatest(p.event_wall, a.event_wall) as event_wall, greatest(p.offered_wall, a.offered_wall) as offered_wall
from person p join auction a on p.id = a.seller
    and a.rowtime between p.rowtime - {window} and p.rowtime + {window} and abs(p.at_us - a.at_us) <= {window_us}
where p.state in ('OR', 'ID', 'CA') and a.category = 10
