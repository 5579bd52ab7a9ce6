package streamgauge;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/** The job of one trial; its argument is the JSON of a Spec. */
public final class Job {
    /** Builds a query's answer; it hands what its operators drop as late to `late`. */
    interface Query {
        DataStream<Result> over(DataStream<Event> events, Spec spec, LateRows late);
    }

    /** Takes a side output of late rows. */
    interface LateRows {
        <T> void count(DataStream<T> dropped);
    }

    private static final long SUITE_CHECKPOINT_MS = 200;

    private Job() {}

    public static void main(String[] arguments) throws Exception {
        Spec spec = new Spec(Wire.JSON.readTree(arguments[0]));
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
        environment.getConfig().enableObjectReuse(); // rows stay what they are within a chain of operators
        if (spec.keepsRows) {
            environment.enableCheckpointing(SUITE_CHECKPOINT_MS); // an answer waits for the last one
        }
        DataStream<Event> events = environment.fromSource(
            new WireSource(spec), WatermarkStrategy.noWatermarks(), "wire", TypeInformation.of(Event.class));
        int[] places = {1};
        LateRows late = new LateRows() {
            @Override
            public <T> void count(DataStream<T> dropped) {
                dropped.flatMap(new Measure.Late<T>(spec, places[0]++)).returns(Types.VOID).name("late").sinkTo(new DiscardingSink<>());
            }
        };
        Query query = (Query) Class.forName("streamgauge." + spec.code).getDeclaredConstructor().newInstance();
        DataStream<Result> answer = query.over(read(events, spec, late), spec, late);
        if (spec.measured) {
            answer.flatMap(new Measure<Result>(spec, 0)).returns(Types.VOID).name("measure").sinkTo(new DiscardingSink<>());
        } else {
            answer.sinkTo(new DiscardingSink<>());
        }
        environment.execute("streamgauge " + spec.query);
    }

    /** The events that concern the query. */
    private static DataStream<Event> read(DataStream<Event> events, Spec spec, LateRows late) {
        DataStream<Event> concerned = spec.reads.isEmpty() ? events : events.filter(new Reads(spec));
        return spec.inTime ? InTime.of(concerned, late) : concerned;
    }
}
