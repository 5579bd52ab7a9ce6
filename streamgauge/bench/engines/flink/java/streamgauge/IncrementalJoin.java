package streamgauge;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** Pairs of a person and an auction of the same key less than a window apart, each as soon as both have come. */
final class IncrementalJoin implements Job.Query {
    @Override
    public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
        return Taken.from(events, spec)
            .keyBy(row -> row.key, Types.STRING)
            .process(new Join(spec.windowUs, spec.keyType)).returns(Result.class);
    }

    /** Keeps each row for a window; a partner that came after that would be late. */
    private static final class Join extends KeyedProcessFunction<String, Taken, Result> {
        private static final long serialVersionUID = 1;
        private final long windowUs;
        private final String keyType;
        private transient ListState<Taken> persons;
        private transient ListState<Taken> auctions;

        Join(long windowUs, String keyType) {
            this.windowUs = windowUs;
            this.keyType = keyType;
        }

        @Override
        public void open(OpenContext context) {
            TypeInformation<Taken> type = TypeInformation.of(Taken.class);
            persons = getRuntimeContext().getListState(new ListStateDescriptor<>("persons", type));
            auctions = getRuntimeContext().getListState(new ListStateDescriptor<>("auctions", type));
        }

        @Override
        public void processElement(Taken row, Context context, Collector<Result> out) throws Exception {
            for (Taken other : (row.marked ? auctions : persons).get()) {
                if (Math.abs(other.timeUs - row.timeUs) < windowUs) {
                    Taken person = row.marked ? row : other;
                    Taken auction = row.marked ? other : row;
                    out.collect(new Result(Math.max(row.eventWall, other.eventWall), Math.max(row.offeredWall, other.offeredWall),
                        Keys.decoded(row.key, keyType), person.seq, auction.seq));
                }
            }
            (row.marked ? persons : auctions).add(row);
            context.timerService().registerEventTimeTimer(row.timeUs + windowUs);
        }

        @Override
        public void onTimer(long time, OnTimerContext context, Collector<Result> out) throws Exception {
            for (ListState<Taken> side : List.of(persons, auctions)) {
                List<Taken> left = new ArrayList<>();
                for (Taken one : side.get()) {
                    if (one.timeUs + windowUs > time) {
                        left.add(one);
                    }
                }
                side.update(left);
            }
        }
    }
}
