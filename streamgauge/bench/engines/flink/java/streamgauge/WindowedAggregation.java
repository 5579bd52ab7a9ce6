package streamgauge;

import java.time.Duration;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple5;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.WindowAssigner;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Count, sum and mean per key and window (Karimov et al., ICDE 2018). */
final class WindowedAggregation implements Job.Query {
    /** key, whether it has a value, the value, the event's and the offer's wall. */
    private static final TypeInformation<Tuple5<String, Boolean, Long, Long, Long>> ROW =
        TypeInformation.of(new TypeHint<>() {});

    @Override
    public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
        OutputTag<Tuple5<String, Boolean, Long, Long, Long>> dropped = new OutputTag<>("late", ROW);
        SingleOutputStreamOperator<Result> answer = events
            .flatMap(new Cut(spec.column(spec.key), spec.column(spec.value))).returns(ROW)
            .keyBy(row -> row.f0, Types.STRING)
            .window(windows(spec))
            .sideOutputLateData(dropped)
            .aggregate(new Sums(), new Emit(spec.keyType), TypeInformation.of(Acc.class), TypeInformation.of(Acc.class),
                TypeInformation.of(Result.class));
        late.count(answer.getSideOutput(dropped));
        return answer;
    }

    static WindowAssigner<Object, TimeWindow> windows(Spec spec) {
        Duration length = Spec.span(spec.windowUs);
        Duration offset = Spec.span(spec.offsetUs);
        return spec.slideUs == spec.windowUs
            ? TumblingEventTimeWindows.of(length, offset)
            : SlidingEventTimeWindows.of(length, Spec.span(spec.slideUs), offset);
    }

    /** Takes what is counted from an event; the sentinel only moves the watermark. */
    private static final class Cut implements FlatMapFunction<Event, Tuple5<String, Boolean, Long, Long, Long>> {
        private static final long serialVersionUID = 1;
        private final int key;
        private final int value;
        private final Tuple5<String, Boolean, Long, Long, Long> row = new Tuple5<>();

        Cut(int key, int value) {
            this.key = key;
            this.value = value;
        }

        @Override
        public void flatMap(Event event, Collector<Tuple5<String, Boolean, Long, Long, Long>> out) {
            if (event.sentinel) {
                return;
            }
            Long exact = exact(event.columns[value]);
            row.setFields(Keys.encoded(event.columns[key]), exact != null, exact == null ? 0 : exact, event.eventWall, event.offeredWall);
            out.collect(row);
        }
    }

    /** A number as it is summed: a float in millionths, rounded half away from zero; null if it fits no 64 bits. */
    static Long exact(Object value) {
        if (!(value instanceof Double number)) {
            return (Long) value;
        }
        double millionths = number * 1e6;
        double size = Math.abs(millionths);
        double floor = Math.floor(size);
        double rounded = Math.copySign(size - floor < 0.5 ? floor : floor + 1, millionths); // size + 0.5 may not be exact
        return Double.isNaN(rounded) || Math.abs(rounded) > 0x1p63 || rounded < -0x1p63 ? null : (Long) (long) rounded;
    }

    /** State of a window. */
    public static final class Acc {
        public long events;
        public long values;
        public long total;
        public long eventWall = Long.MIN_VALUE;
        public long offeredWall = Long.MIN_VALUE;
    }

    private static final class Sums implements AggregateFunction<Tuple5<String, Boolean, Long, Long, Long>, Acc, Acc> {
        private static final long serialVersionUID = 1;

        @Override
        public Acc createAccumulator() {
            return new Acc();
        }

        @Override
        public Acc add(Tuple5<String, Boolean, Long, Long, Long> row, Acc acc) {
            acc.events++;
            if (row.f1) {
                acc.values++;
                acc.total = Math.addExact(acc.total, row.f2);
            }
            acc.eventWall = Math.max(acc.eventWall, row.f3);
            acc.offeredWall = Math.max(acc.offeredWall, row.f4);
            return acc;
        }

        @Override
        public Acc getResult(Acc acc) {
            return acc;
        }

        @Override
        public Acc merge(Acc one, Acc other) {
            throw new UnsupportedOperationException("these windows do not merge");
        }
    }

    private static final class Emit extends ProcessWindowFunction<Acc, Result, String, TimeWindow> {
        private static final long serialVersionUID = 1;
        private final String keyType;

        Emit(String keyType) {
            this.keyType = keyType;
        }

        @Override
        public void process(String key, Context context, Iterable<Acc> accs, Collector<Result> out) {
            Acc acc = accs.iterator().next();
            Long total = acc.values == 0 ? null : acc.total;
            Double mean = total == null ? null : (double) total / (double) acc.events;
            out.collect(new Result(
                acc.eventWall, acc.offeredWall, context.window().getStart(), context.window().getEnd(),
                Keys.decoded(key, keyType), acc.events, total, mean));
        }
    }
}
