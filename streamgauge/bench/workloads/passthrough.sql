select seq, event_time, {columns} from frame0
