package streamgauge;

import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.util.Collector;

/** Count and sum per key and session; a session ends with a gap of one window. Without a value, the count alone. */
final class Sessions extends Grouped<Sessions.Sum> implements Job.Query {
    private static final long serialVersionUID = 1;
    private boolean sums;

    /** State of a session. */
    public static final class Sum extends Grouped.Acc {
        public long events;
        public Long total; // null as long as there is no number
    }

    @Override
    public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
        sums = spec.value != null;
        return over(events, spec, EventTimeSessionWindows.withGap(Spec.span(spec.windowUs)), Sum.class, late);
    }

    @Override
    public Sum createAccumulator() {
        return new Sum();
    }

    @Override
    public Sum add(Taken row, Sum sum) {
        sum.join(row.eventWall, row.offeredWall);
        sum.events++;
        sum.total = plus(sum.total, row.number);
        return sum;
    }

    @Override
    public Sum merge(Sum one, Sum other) {
        one.join(other.eventWall, other.offeredWall);
        one.events += other.events;
        one.total = plus(one.total, other.total);
        return one;
    }

    private static Long plus(Long one, Long other) {
        return one == null ? other : other == null ? one : (Long) Math.addExact(one, other);
    }

    @Override
    void emit(Sum sum, Object key, long start, long end, Collector<Result> out) {
        out.collect(sums
            ? new Result(sum.eventWall, sum.offeredWall, start, end, key, sum.events, sum.total)
            : new Result(sum.eventWall, sum.offeredWall, start, end, key, sum.events));
    }
}
