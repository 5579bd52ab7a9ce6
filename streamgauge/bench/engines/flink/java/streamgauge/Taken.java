package streamgauge;

import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.streaming.api.datastream.DataStream;

/** What the windowed queries take from an event. */
public final class Taken {
    public String key; // see Keys
    public Long number; // the value as it is summed; null if it is none
    public boolean marked; // of the second kind
    public long seq;
    public long timeUs;
    public long eventWall;
    public long offeredWall;

    /** Keyed by the workload's key, without the sentinel, which only moves the watermark. */
    static DataStream<Taken> from(DataStream<Event> events, Spec spec) {
        return events.filter(event -> !event.sentinel).map(new Take(spec)).returns(Taken.class);
    }

    private static final class Take implements MapFunction<Event, Taken> {
        private static final long serialVersionUID = 1;
        private final int key;
        private final int value;
        private final String mark;
        private final boolean counts;

        Take(Spec spec) {
            key = spec.column(spec.key);
            value = spec.column(spec.value);
            mark = spec.mark;
            counts = value >= 0 && !spec.types[value].equals("string");
        }

        @Override
        public Taken map(Event event) {
            Taken made = new Taken(); // windows keep it
            made.key = Keys.encoded(event.columns[key]);
            made.number = counts ? WindowedAggregation.exact(event.columns[value]) : null;
            made.marked = mark != null && event.columns[value] != null && mark.equals(event.columns[value].toString());
            made.seq = event.seq;
            made.timeUs = event.timeUs;
            made.eventWall = event.eventWall;
            made.offeredWall = event.offeredWall;
            return made;
        }
    }
}
