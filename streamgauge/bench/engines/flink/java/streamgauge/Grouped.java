package streamgauge;

import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.WindowAssigner;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Aggregates what was taken by key and window, in windows of any kind, and counts what no window holds. */
abstract class Grouped<A extends Grouped.Acc> implements AggregateFunction<Taken, A, A> {
    private static final long serialVersionUID = 1;

    /** State of a group: at least its latest walls. */
    public static class Acc {
        public long eventWall = Long.MIN_VALUE;
        public long offeredWall = Long.MIN_VALUE;

        final void join(long event, long offered) {
            eventWall = Math.max(eventWall, event);
            offeredWall = Math.max(offeredWall, offered);
        }
    }

    /** The results of a group whose window has ended. */
    abstract void emit(A acc, Object key, long start, long end, Collector<Result> out);

    final DataStream<Result> over(DataStream<Event> events, Spec spec, WindowAssigner<Object, TimeWindow> windows,
        Class<A> state, Job.LateRows late) {
        OutputTag<Taken> dropped = new OutputTag<>("late", TypeInformation.of(Taken.class));
        SingleOutputStreamOperator<Result> answer = Taken.from(events, spec)
            .keyBy(row -> row.key, Types.STRING)
            .window(windows)
            .sideOutputLateData(dropped)
            .aggregate(this, new Emit<>(this, spec.keyType), TypeInformation.of(state), TypeInformation.of(state),
                TypeInformation.of(Result.class));
        late.count(answer.getSideOutput(dropped));
        return answer;
    }

    @Override
    public final A getResult(A acc) {
        return acc;
    }

    private static final class Emit<A extends Acc> extends ProcessWindowFunction<A, Result, String, TimeWindow> {
        private static final long serialVersionUID = 1;
        private final Grouped<A> group;
        private final String keyType;

        Emit(Grouped<A> group, String keyType) {
            this.group = group;
            this.keyType = keyType;
        }

        @Override
        public void process(String key, Context context, Iterable<A> accs, Collector<Result> out) {
            TimeWindow window = context.window();
            group.emit(accs.iterator().next(), Keys.decoded(key, keyType), window.getStart(), window.getEnd(), out);
        }
    }
}
