package streamgauge;

import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/** One event per key and window, as soon as the first comes; it is forgotten once another one would be late. */
final class Deduplication implements Job.Query {
    @Override
    public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
        long size = spec.windowUs;
        long offset = spec.offsetUs;
        return Taken.from(events, spec)
            .keyBy(row -> Tuple2.of(row.key, TimeWindow.getWindowStartWithOffset(row.timeUs, offset, size)),
                Types.TUPLE(Types.STRING, Types.LONG))
            .process(new First(size, spec.keyType)).returns(Result.class);
    }

    private static final class First extends KeyedProcessFunction<Tuple2<String, Long>, Taken, Result> {
        private static final long serialVersionUID = 1;
        private final long size;
        private final String keyType;
        private transient ValueState<Boolean> seen;

        First(long size, String keyType) {
            this.size = size;
            this.keyType = keyType;
        }

        @Override
        public void open(OpenContext context) {
            seen = getRuntimeContext().getState(new ValueStateDescriptor<>("seen", Types.BOOLEAN));
        }

        @Override
        public void processElement(Taken row, Context context, Collector<Result> out) throws Exception {
            if (seen.value() == null) {
                seen.update(true);
                long start = context.getCurrentKey().f1;
                context.timerService().registerEventTimeTimer(start + size - 1);
                out.collect(new Result(row.eventWall, row.offeredWall, start, start + size, Keys.decoded(row.key, keyType)));
            }
        }

        @Override
        public void onTimer(long time, OnTimerContext context, Collector<Result> out) {
            seen.clear();
        }
    }
}
