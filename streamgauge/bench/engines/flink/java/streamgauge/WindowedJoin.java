package streamgauge;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * Pairs of one event of each half of the stream with equal key in the same window; null keys match nothing.
 *
 * Both halves come to the window by one input. With one for each, as in SQL's window join, the two watermarks race, and
 * which late event is still taken depends on who wins.
 */
class WindowedJoin implements Job.Query {
    private final boolean outer;

    WindowedJoin() {
        this(false);
    }

    private WindowedJoin(boolean outer) {
        this.outer = outer;
    }

    /** The same, and each event of the left half that met none. */
    static final class Outer extends WindowedJoin {
        Outer() {
            super(true);
        }
    }

    /** An event of either half. */
    public static final class Half {
        public boolean right;
        public String key; // see Keys
        public String value;
        public long seq;
        public long eventWall;
        public long offeredWall;
    }

    @Override
    public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
        int key = spec.column(spec.key);
        int value = spec.column(spec.value);
        OutputTag<Half> dropped = new OutputTag<>("late", TypeInformation.of(Half.class));
        SingleOutputStreamOperator<Result> answer = events
            .filter(event -> !event.sentinel && (event.columns[key] != null || !isRight(event)))
            .map(event -> {
                Half made = new Half();
                made.right = isRight(event);
                made.key = Keys.encoded(event.columns[key]);
                made.value = Keys.encoded(value < 0 ? null : event.columns[value]);
                made.seq = event.seq;
                made.eventWall = event.eventWall;
                made.offeredWall = event.offeredWall;
                return made;
            }).returns(Half.class)
            .keyBy(half -> half.key, Types.STRING)
            .window(WindowedAggregation.windows(spec))
            .sideOutputLateData(dropped)
            .process(new Pairs(outer, spec.keyType, value < 0 ? null : spec.types[value]), TypeInformation.of(Result.class));
        late.count(answer.getSideOutput(dropped));
        return answer;
    }

    private static boolean isRight(Event event) {
        return Math.floorMod(event.timeUs + event.seq, 2L) == 1;
    }

    private static final class Pairs extends ProcessWindowFunction<Half, Result, String, TimeWindow> {
        private static final long serialVersionUID = 1;
        private final boolean outer;
        private final String keyType;
        private final String valueType; // null: no value is asked for

        Pairs(boolean outer, String keyType, String valueType) {
            this.outer = outer;
            this.keyType = keyType;
            this.valueType = valueType;
        }

        @Override
        public void process(String key, Context context, Iterable<Half> halves, Collector<Result> out) {
            List<Half> rights = new ArrayList<>();
            for (Half half : halves) {
                if (half.right) {
                    rights.add(half);
                }
            }
            for (Half left : halves) {
                if (!left.right) {
                    for (Half right : rights) {
                        out.collect(pair(context.window(), left, right));
                    }
                    if (outer && rights.isEmpty()) {
                        out.collect(pair(context.window(), left, null));
                    }
                }
            }
        }

        private Result pair(TimeWindow window, Half left, Half right) {
            Object key = Keys.decoded(left.key, keyType);
            Long rightSeq = right == null ? null : (Long) right.seq;
            long eventWall = right == null ? left.eventWall : Math.max(left.eventWall, right.eventWall);
            long offeredWall = right == null ? left.offeredWall : Math.max(left.offeredWall, right.offeredWall);
            if (valueType == null) {
                return new Result(eventWall, offeredWall, window.getStart(), window.getEnd(), key, left.seq, rightSeq);
            }
            Object rightValue = right == null ? null : Keys.decoded(right.value, valueType);
            return new Result(eventWall, offeredWall, window.getStart(), window.getEnd(), key, left.seq, rightSeq,
                Keys.decoded(left.value, valueType), rightValue);
        }
    }
}
