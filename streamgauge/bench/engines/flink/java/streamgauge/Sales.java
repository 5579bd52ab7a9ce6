package streamgauge;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** Averages over the auctions that were won. */
final class Sales {
    private Sales() {}

    /** Sums so far. */
    public static final class Sum {
        public long sales;
        public long total;
        public List<Long> prices = new ArrayList<>(); // of the last sales
        public long eventWall = Long.MIN_VALUE;
        public long offeredWall = Long.MIN_VALUE;

        void add(Winners.Won won) {
            sales++;
            total += won.bid.price;
            eventWall = Math.max(eventWall, won.eventWall);
            offeredWall = Math.max(offeredWall, won.offeredWall);
        }
    }

    private abstract static class Summing extends KeyedProcessFunction<Long, Winners.Won, Result> {
        private static final long serialVersionUID = 1;
        private transient ValueState<Sum> state;

        @Override
        public void open(OpenContext context) {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", TypeInformation.of(Sum.class)));
        }

        final Sum with(Winners.Won won, int last) throws Exception {
            Sum sum = state.value() == null ? new Sum() : state.value();
            sum.add(won);
            sum.prices.add(won.bid.price);
            if (sum.prices.size() > last) {
                sum.prices.remove(0);
            }
            state.update(sum);
            return sum;
        }
    }

    /** q4: average winning price per category, again with every sale. */
    static final class Q4 implements Job.Query {
        @Override
        public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
            return Winners.of(events, spec).keyBy(won -> won.auction.category, Types.LONG)
                .process(new Average()).returns(Result.class);
        }

        private static final class Average extends Summing {
            private static final long serialVersionUID = 1;

            @Override
            public void processElement(Winners.Won won, Context context, Collector<Result> out) throws Exception {
                Sum sum = with(won, 0);
                out.collect(new Result(sum.eventWall, sum.offeredWall, won.auction.category, sum.sales, sum.total,
                    (double) sum.total / (double) sum.sales));
            }
        }
    }

    /** q6: average price of a seller's last ten sales, in the order in which auctions expire, with every sale. */
    static final class Q6 implements Job.Query {
        @Override
        public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
            return Winners.of(events, spec).keyBy(won -> won.auction.seller, Types.LONG)
                .process(new LastSales()).returns(Result.class);
        }

        /** Sales come when the watermark passes their expiry, but not in order: each waits for a timer of that time. */
        private static final class LastSales extends Summing {
            private static final long serialVersionUID = 1;
            private static final int LAST = 10;
            private transient ListState<Winners.Won> waiting;

            @Override
            public void open(OpenContext context) {
                super.open(context);
                waiting = getRuntimeContext().getListState(
                    new ListStateDescriptor<>("waiting", TypeInformation.of(Winners.Won.class)));
            }

            @Override
            public void processElement(Winners.Won won, Context context, Collector<Result> out) throws Exception {
                waiting.add(won);
                context.timerService().registerEventTimeTimer(won.auction.expires);
            }

            @Override
            public void onTimer(long time, OnTimerContext context, Collector<Result> out) throws Exception {
                List<Winners.Won> due = new ArrayList<>();
                List<Winners.Won> left = new ArrayList<>();
                for (Winners.Won won : waiting.get()) {
                    (won.auction.expires <= time ? due : left).add(won);
                }
                waiting.update(left);
                due.sort(Comparator.<Winners.Won>comparingLong(won -> won.auction.expires)
                    .thenComparingLong(won -> won.auction.auction));
                for (Winners.Won won : due) {
                    Sum sum = with(won, LAST);
                    long prices = sum.prices.stream().mapToLong(Long::longValue).sum();
                    out.collect(new Result(sum.eventWall, sum.offeredWall, won.auction.seller, won.auction.auction,
                        (long) sum.prices.size(), (double) prices / (double) sum.prices.size()));
                }
            }
        }
    }
}
