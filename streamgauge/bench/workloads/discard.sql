select seq, event_time from frame0 where false
