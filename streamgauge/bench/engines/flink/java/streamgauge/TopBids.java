package streamgauge;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** q19: the highest bids on each auction; a place is emitted again when its bid has changed. */
final class TopBids implements Job.Query {
    /** A bid of those at the top. */
    public static final class Bid {
        public long auction;
        public long price;
        public long timeUs;
        public long seq;
        public long bidder;
        public String extra;
        public long eventWall;
        public long offeredWall;
    }

    /** State of an auction. seen: bids so far, so that a later revision of a place has a larger one. */
    public static final class Top {
        public long seen;
        public List<Bid> bids = new ArrayList<>();
    }

    @Override
    public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
        int auction = spec.column("auction");
        int price = spec.column("price");
        int bidder = spec.column("bidder");
        int extra = spec.column("extra");
        return events.map(event -> {
            Bid made = new Bid();
            made.auction = (Long) event.columns[auction];
            made.price = (Long) event.columns[price];
            made.timeUs = event.timeUs;
            made.seq = event.seq;
            made.bidder = (Long) event.columns[bidder];
            made.extra = (String) event.columns[extra];
            made.eventWall = event.eventWall;
            made.offeredWall = event.offeredWall;
            return made;
        }).returns(Bid.class).keyBy(bid -> bid.auction, Types.LONG).process(new Rank(spec.top)).returns(Result.class);
    }

    private static final class Rank extends KeyedProcessFunction<Long, Bid, Result> {
        private static final long serialVersionUID = 1;
        private static final Comparator<Bid> ORDER = Comparator.<Bid>comparingLong(bid -> -bid.price)
            .thenComparingLong(bid -> bid.timeUs).thenComparingLong(bid -> bid.seq);
        private final int count;
        private transient ValueState<Top> state;

        Rank(int count) {
            this.count = count;
        }

        @Override
        public void open(OpenContext context) {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("top", TypeInformation.of(Top.class)));
        }

        @Override
        public void processElement(Bid bid, Context context, Collector<Result> out) throws Exception {
            Top top = state.value() == null ? new Top() : state.value();
            top.seen++;
            top.bids.add(bid);
            top.bids.sort(ORDER);
            int changed = top.bids.indexOf(bid); // this place, and all below it
            if (top.bids.size() > count) {
                top.bids.remove(count);
            }
            state.update(top);
            for (int i = changed; i < top.bids.size(); i++) {
                Bid one = top.bids.get(i);
                out.collect(new Result(one.eventWall, one.offeredWall, bid.auction, i + 1L, top.seen, one.price,
                    one.timeUs, one.seq, one.bidder, one.extra));
            }
        }
    }
}
