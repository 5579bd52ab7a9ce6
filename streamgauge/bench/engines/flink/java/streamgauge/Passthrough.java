package streamgauge;

import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.streaming.api.datastream.DataStream;

/** Every event, unchanged. */
final class Passthrough implements Job.Query {
    @Override
    public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
        int[] places = new int[spec.results.length - 2];
        for (int i = 0; i < places.length; i++) {
            places[i] = spec.column(spec.results[i + 2]);
        }
        return events.map(new Copy(places)).returns(Result.class);
    }

    /** seq, event_time, then the columns at these places. */
    private static final class Copy implements MapFunction<Event, Result> {
        private static final long serialVersionUID = 1;
        private final int[] places;

        Copy(int[] places) {
            this.places = places;
        }

        @Override
        public Result map(Event event) {
            Object[] values = new Object[2 + places.length];
            values[0] = event.seq;
            values[1] = event.eventTime;
            for (int i = 0; i < places.length; i++) {
                values[i + 2] = event.columns[places[i]];
            }
            Result made = new Result(event.eventWall, event.offeredWall, values);
            made.sentinel = event.sentinel;
            return made;
        }
    }
}
