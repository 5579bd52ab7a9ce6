package streamgauge;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.util.Collector;

/** The largest values per key and window, the earlier event first among equals, nulls last. */
final class TopN extends Grouped<TopN.Best> implements Job.Query {
    private static final long serialVersionUID = 1;
    private static final int NUMBER = 1;
    private static final int SEQ = 2;
    /** {1 if there is a number, the number, seq}. */
    private static final Comparator<long[]> ORDER = Comparator.<long[]>comparingLong(row -> -row[0])
        .thenComparing(Comparator.<long[]>comparingLong(row -> row[NUMBER]).reversed())
        .thenComparingLong(row -> row[SEQ]);
    private int top;

    /** The best rows so far, in their order. */
    public static final class Best extends Grouped.Acc {
        public List<long[]> rows = new ArrayList<>();
    }

    @Override
    public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
        top = spec.top;
        return over(events, spec, WindowedAggregation.windows(spec), Best.class, late);
    }

    @Override
    public Best createAccumulator() {
        return new Best();
    }

    @Override
    public Best add(Taken row, Best best) {
        best.join(row.eventWall, row.offeredWall);
        best.rows.add(new long[] {row.number == null ? 0 : 1, row.number == null ? 0 : row.number, row.seq});
        best.rows.sort(ORDER);
        if (best.rows.size() > top) {
            best.rows.remove(top);
        }
        return best;
    }

    @Override
    public Best merge(Best one, Best other) {
        throw new UnsupportedOperationException("these windows do not merge");
    }

    @Override
    void emit(Best best, Object key, long start, long end, Collector<Result> out) {
        long rank = 0;
        for (long[] row : best.rows) {
            Long number = row[0] == 0 ? null : row[NUMBER];
            out.collect(new Result(best.eventWall, best.offeredWall, start, end, key, ++rank, number, row[SEQ]));
        }
    }
}
