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

/** The winning bid of each auction, for q4, q6 and q9: the highest up to its expiry, of equal ones the earliest. */
final class Winners {
    private Winners() {}

    /** An auction or a bid. */
    public static final class Sale {
        public boolean opens; // an auction
        public long auction;
        public long timeUs;
        public long seq;
        public long expires; // of an auction, as seller and category
        public long seller;
        public long category;
        public long bidder; // of a bid, as price
        public long price;
        public long eventWall;
        public long offeredWall;
    }

    /** An auction that has ended, with the bid that won it. */
    public static final class Won {
        public Sale auction;
        public Sale bid;
        public long eventWall;
        public long offeredWall;
    }

    static DataStream<Won> of(DataStream<Event> events, Spec spec) {
        int kind = spec.column("kind");
        int id = spec.column("id");
        int auction = spec.column("auction");
        int expires = spec.column("expires");
        int seller = spec.column("seller");
        int category = spec.column("category");
        int bidder = spec.column("bidder");
        int price = spec.column("price");
        return events.map(event -> {
            Sale made = new Sale();
            made.opens = "auction".equals(event.columns[kind]);
            made.auction = (Long) event.columns[made.opens ? id : auction];
            made.timeUs = event.timeUs;
            made.seq = event.seq;
            if (made.opens) {
                made.expires = (Long) event.columns[expires];
                made.seller = (Long) event.columns[seller];
                made.category = (Long) event.columns[category];
            } else {
                made.bidder = (Long) event.columns[bidder];
                made.price = (Long) event.columns[price];
            }
            made.eventWall = event.eventWall;
            made.offeredWall = event.offeredWall;
            return made;
        }).returns(Sale.class).keyBy(sale -> sale.auction, Types.LONG).process(new Close()).returns(Won.class);
    }

    /** Keeps an auction until it expires, and bids without one until their auction could only come late. */
    private static final class Close extends KeyedProcessFunction<Long, Sale, Won> {
        private static final long serialVersionUID = 1;
        private static final Comparator<Sale> RANK = Comparator.<Sale>comparingLong(bid -> bid.price)
            .thenComparingLong(bid -> -bid.timeUs).thenComparingLong(bid -> -bid.seq);
        private transient ValueState<Sale> opened;
        private transient ListState<Sale> bids; // with an auction, the best of its bids alone

        @Override
        public void open(OpenContext context) {
            TypeInformation<Sale> type = TypeInformation.of(Sale.class);
            opened = getRuntimeContext().getState(new ValueStateDescriptor<>("auction", type));
            bids = getRuntimeContext().getListState(new ListStateDescriptor<>("bids", type));
        }

        @Override
        public void processElement(Sale sale, Context context, Collector<Won> out) throws Exception {
            if (sale.opens) {
                opened.update(sale);
            } else {
                bids.add(sale);
            }
            Sale auction = opened.value();
            if (auction != null) {
                Sale best = null;
                for (Sale bid : bids.get()) {
                    boolean within = auction.timeUs <= bid.timeUs && bid.timeUs <= auction.expires;
                    if (within && (best == null || RANK.compare(bid, best) > 0)) {
                        best = bid;
                    }
                }
                bids.update(best == null ? List.of() : List.of(best));
            }
            context.timerService().registerEventTimeTimer(auction == null ? sale.timeUs : auction.expires);
        }

        @Override
        public void onTimer(long time, OnTimerContext context, Collector<Won> out) throws Exception {
            Sale auction = opened.value();
            if (auction == null) {
                List<Sale> left = new ArrayList<>();
                for (Sale bid : bids.get()) {
                    if (bid.timeUs > time) {
                        left.add(bid);
                    }
                }
                bids.update(left);
            } else if (auction.expires <= time) {
                for (Sale bid : bids.get()) {
                    Won won = new Won();
                    won.auction = auction;
                    won.bid = bid;
                    won.eventWall = Math.max(auction.eventWall, bid.eventWall);
                    won.offeredWall = Math.max(auction.offeredWall, bid.offeredWall);
                    out.collect(won);
                }
                opened.clear();
                bids.clear();
            }
        }
    }

    /** q9: the winning bid of each auction, when it closes. */
    static final class Q9 implements Job.Query {
        @Override
        public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
            return of(events, spec).map(won -> new Result(won.eventWall, won.offeredWall, won.auction.auction,
                won.auction.seller, won.auction.category, won.auction.expires, won.bid.bidder, won.bid.price, won.bid.timeUs))
                .returns(Result.class);
        }
    }
}
