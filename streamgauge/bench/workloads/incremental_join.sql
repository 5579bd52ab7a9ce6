select person.key, person.seq as person_seq, auction.seq as auction_seq
from events person join events auction on person.key is not distinct from auction.key
where person.marked and not auction.marked and abs(person.at_us - auction.at_us) < {window_us}
