package streamgauge;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.api.java.tuple.Tuple5;
import org.apache.flink.api.java.tuple.Tuple6;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.functions.windowing.ProcessAllWindowFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Queries of the Nexmark suite over the columns of streamgauge/base/schemas.py, as their SQL asks them. */
final class Nexmark {
    private Nexmark() {}

    private static long number(Event event, int column) {
        return (Long) event.columns[column];
    }

    /** q0: every bid, unchanged. */
    static final class Q0 implements Job.Query {
        @Override
        public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
            int kind = spec.column("kind");
            int[] places = new int[spec.results.length];
            for (int i = 0; i < places.length; i++) {
                places[i] = spec.column(spec.results[i]); // -1: the event's time
            }
            return events.flatMap(new Bids(kind, places)).returns(Result.class);
        }

        private static final class Bids implements FlatMapFunction<Event, Result> {
            private static final long serialVersionUID = 1;
            private final int kind;
            private final int[] places;

            Bids(int kind, int[] places) {
                this.kind = kind;
                this.places = places;
            }

            @Override
            public void flatMap(Event event, Collector<Result> out) {
                if ("bid".equals(event.columns[kind])) {
                    Object[] values = new Object[places.length];
                    for (int i = 0; i < places.length; i++) {
                        values[i] = places[i] < 0 ? (Long) event.timeUs : event.columns[places[i]];
                    }
                    out.collect(new Result(event.eventWall, event.offeredWall, values));
                }
            }
        }
    }

    /** q5: the auctions with most bids in each sliding window. */
    static final class Q5 implements Job.Query {
        /** auction, the event's and the offer's wall. */
        private static final TypeInformation<Tuple3<Long, Long, Long>> BID = TypeInformation.of(new TypeHint<>() {});
        /** window's end, auction, bids, walls. */
        private static final TypeInformation<Tuple5<Long, Long, Long, Long, Long>> COUNT = TypeInformation.of(new TypeHint<>() {});

        @Override
        public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
            int kind = spec.column("kind");
            int auction = spec.column("auction");
            OutputTag<Tuple3<Long, Long, Long>> dropped = new OutputTag<>("late", BID);
            SingleOutputStreamOperator<Tuple5<Long, Long, Long, Long, Long>> counts = events
                .flatMap((Event event, Collector<Tuple3<Long, Long, Long>> out) -> {
                    if ("bid".equals(event.columns[kind])) {
                        out.collect(Tuple3.of(number(event, auction), event.eventWall, event.offeredWall));
                    }
                }).returns(BID)
                .keyBy(bid -> bid.f0, Types.LONG)
                .window(WindowedAggregation.windows(spec))
                .sideOutputLateData(dropped)
                .aggregate(new Counts(), new End(), BID, BID, COUNT);
            late.count(counts.getSideOutput(dropped));
            // a window's counts bear the time of its end, and one window ends in each slide
            return counts.windowAll(TumblingEventTimeWindows.of(Spec.span(spec.slideUs)))
                .process(new Most(spec.windowUs), TypeInformation.of(Result.class));
        }

        /** Counts the bids of an auction: bids and the latest walls. */
        private static final class Counts
            implements AggregateFunction<Tuple3<Long, Long, Long>, Tuple3<Long, Long, Long>, Tuple3<Long, Long, Long>> {
            private static final long serialVersionUID = 1;

            @Override
            public Tuple3<Long, Long, Long> createAccumulator() {
                return Tuple3.of(0L, Long.MIN_VALUE, Long.MIN_VALUE);
            }

            @Override
            public Tuple3<Long, Long, Long> add(Tuple3<Long, Long, Long> bid, Tuple3<Long, Long, Long> acc) {
                acc.setFields(acc.f0 + 1, Math.max(acc.f1, bid.f1), Math.max(acc.f2, bid.f2));
                return acc;
            }

            @Override
            public Tuple3<Long, Long, Long> getResult(Tuple3<Long, Long, Long> acc) {
                return acc;
            }

            @Override
            public Tuple3<Long, Long, Long> merge(Tuple3<Long, Long, Long> one, Tuple3<Long, Long, Long> other) {
                throw new UnsupportedOperationException("these windows do not merge");
            }
        }

        private static final class End
            extends ProcessWindowFunction<Tuple3<Long, Long, Long>, Tuple5<Long, Long, Long, Long, Long>, Long, TimeWindow> {
            private static final long serialVersionUID = 1;

            @Override
            public void process(Long auction, Context context, Iterable<Tuple3<Long, Long, Long>> counts,
                Collector<Tuple5<Long, Long, Long, Long, Long>> out) {
                Tuple3<Long, Long, Long> one = counts.iterator().next();
                out.collect(Tuple5.of(context.window().getEnd(), auction, one.f0, one.f1, one.f2));
            }
        }

        private static final class Most
            extends ProcessAllWindowFunction<Tuple5<Long, Long, Long, Long, Long>, Result, TimeWindow> {
            private static final long serialVersionUID = 1;
            private final long windowUs;

            Most(long windowUs) {
                this.windowUs = windowUs;
            }

            @Override
            public void process(Context context, Iterable<Tuple5<Long, Long, Long, Long, Long>> counts, Collector<Result> out) {
                long most = 0;
                long eventWall = Long.MIN_VALUE;
                long offeredWall = Long.MIN_VALUE;
                for (Tuple5<Long, Long, Long, Long, Long> one : counts) {
                    most = Math.max(most, one.f2);
                    eventWall = Math.max(eventWall, one.f3);
                    offeredWall = Math.max(offeredWall, one.f4);
                }
                for (Tuple5<Long, Long, Long, Long, Long> one : counts) {
                    if (one.f2 == most) {
                        long endUs = one.f0;
                        out.collect(new Result(eventWall, offeredWall, endUs - windowUs, endUs, one.f1, one.f2));
                    }
                }
            }
        }
    }

    /** q7: the highest bids of each window. */
    static final class Q7 implements Job.Query {
        /** price, auction, bidder, time in µs, walls. */
        private static final TypeInformation<Tuple6<Long, Long, Long, Long, Long, Long>> BID = TypeInformation.of(new TypeHint<>() {});

        @Override
        public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
            int kind = spec.column("kind");
            int price = spec.column("price");
            int auction = spec.column("auction");
            int bidder = spec.column("bidder");
            OutputTag<Tuple6<Long, Long, Long, Long, Long, Long>> dropped = new OutputTag<>("late", BID);
            SingleOutputStreamOperator<Result> answer = events
                .flatMap((Event event, Collector<Tuple6<Long, Long, Long, Long, Long, Long>> out) -> {
                    if ("bid".equals(event.columns[kind])) {
                        out.collect(Tuple6.of(number(event, price), number(event, auction), number(event, bidder),
                            event.timeUs, event.eventWall, event.offeredWall));
                    }
                }).returns(BID)
                .windowAll(WindowedAggregation.windows(spec))
                .sideOutputLateData(dropped)
                .aggregate(new Highest(), new Emit(), TypeInformation.of(Best.class), TypeInformation.of(Best.class),
                    TypeInformation.of(Result.class));
            late.count(answer.getSideOutput(dropped));
            return answer;
        }

        /** The highest bids so far: auction, bidder and time of each. */
        public static final class Best {
            public long price = Long.MIN_VALUE;
            public List<long[]> bids = new ArrayList<>();
            public long eventWall = Long.MIN_VALUE;
            public long offeredWall = Long.MIN_VALUE;
        }

        private static final class Highest implements AggregateFunction<Tuple6<Long, Long, Long, Long, Long, Long>, Best, Best> {
            private static final long serialVersionUID = 1;

            @Override
            public Best createAccumulator() {
                return new Best();
            }

            @Override
            public Best add(Tuple6<Long, Long, Long, Long, Long, Long> bid, Best best) {
                best.eventWall = Math.max(best.eventWall, bid.f4);
                best.offeredWall = Math.max(best.offeredWall, bid.f5);
                if (bid.f0 > best.price) {
                    best.price = bid.f0;
                    best.bids.clear();
                }
                if (bid.f0 == best.price) {
                    best.bids.add(new long[] {bid.f1, bid.f2, bid.f3});
                }
                return best;
            }

            @Override
            public Best getResult(Best best) {
                return best;
            }

            @Override
            public Best merge(Best one, Best other) {
                throw new UnsupportedOperationException("these windows do not merge");
            }
        }

        private static final class Emit extends ProcessAllWindowFunction<Best, Result, TimeWindow> {
            private static final long serialVersionUID = 1;

            @Override
            public void process(Context context, Iterable<Best> found, Collector<Result> out) {
                Best best = found.iterator().next();
                long start = context.window().getStart();
                long end = context.window().getEnd();
                for (long[] bid : best.bids) {
                    out.collect(new Result(best.eventWall, best.offeredWall, start, end, best.price, bid[0], bid[1], bid[2]));
                }
            }
        }
    }

    /** q8: people who joined and opened an auction in the same window. */
    static final class Q8 implements Job.Query {
        /** id, the person's name or "" for an auction, walls. */
        private static final TypeInformation<Tuple5<Long, Boolean, String, Long, Long>> ROW = TypeInformation.of(new TypeHint<>() {});

        @Override
        public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
            int kind = spec.column("kind");
            int id = spec.column("id");
            int name = spec.column("name");
            int seller = spec.column("seller");
            OutputTag<Tuple5<Long, Boolean, String, Long, Long>> dropped = new OutputTag<>("late", ROW);
            SingleOutputStreamOperator<Result> answer = events
                .flatMap((Event event, Collector<Tuple5<Long, Boolean, String, Long, Long>> out) -> {
                    boolean person = "person".equals(event.columns[kind]);
                    if (person || "auction".equals(event.columns[kind])) {
                        out.collect(Tuple5.of(number(event, person ? id : seller), person,
                            person ? (String) event.columns[name] : "", event.eventWall, event.offeredWall));
                    }
                }).returns(ROW)
                .keyBy(row -> row.f0, Types.LONG)
                .window(WindowedAggregation.windows(spec))
                .sideOutputLateData(dropped)
                .aggregate(new Both(), new Emit(), TypeInformation.of(Seen.class), TypeInformation.of(Seen.class),
                    TypeInformation.of(Result.class));
            late.count(answer.getSideOutput(dropped));
            return answer;
        }

        /** What a window has seen of an id. */
        public static final class Seen {
            public Set<String> names = new LinkedHashSet<>();
            public long auctions;
            public long eventWall = Long.MIN_VALUE;
            public long offeredWall = Long.MIN_VALUE;
        }

        private static final class Both implements AggregateFunction<Tuple5<Long, Boolean, String, Long, Long>, Seen, Seen> {
            private static final long serialVersionUID = 1;

            @Override
            public Seen createAccumulator() {
                return new Seen();
            }

            @Override
            public Seen add(Tuple5<Long, Boolean, String, Long, Long> row, Seen seen) {
                if (row.f1) {
                    seen.names.add(row.f2);
                } else {
                    seen.auctions++;
                }
                seen.eventWall = Math.max(seen.eventWall, row.f3);
                seen.offeredWall = Math.max(seen.offeredWall, row.f4);
                return seen;
            }

            @Override
            public Seen getResult(Seen seen) {
                return seen;
            }

            @Override
            public Seen merge(Seen one, Seen other) {
                throw new UnsupportedOperationException("these windows do not merge");
            }
        }

        private static final class Emit extends ProcessWindowFunction<Seen, Result, Long, TimeWindow> {
            private static final long serialVersionUID = 1;

            @Override
            public void process(Long id, Context context, Iterable<Seen> found, Collector<Result> out) {
                Seen seen = found.iterator().next();
                if (seen.auctions > 0) {
                    for (String name : seen.names) {
                        out.collect(new Result(seen.eventWall, seen.offeredWall, context.window().getStart(),
                            context.window().getEnd(), id, name, seen.auctions));
                    }
                }
            }
        }
    }
}
