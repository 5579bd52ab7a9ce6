package streamgauge;

import java.util.Map;
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

    static final Map<String, Query> QUERIES = Map.of(
        "passthrough", new Passthrough(),
        "windowed_aggregation", new WindowedAggregation(),
        "nexmark.q0", new Nexmark.Q0(),
        "nexmark.q5", new Nexmark.Q5(),
        "nexmark.q7", new Nexmark.Q7(),
        "nexmark.q8", new Nexmark.Q8());

    private Job() {}

    public static void main(String[] arguments) throws Exception {
        Spec spec = new Spec(Wire.JSON.readTree(arguments[0]));
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
        environment.getConfig().enableObjectReuse(); // rows stay what they are within a chain of operators
        DataStream<Event> events = environment.fromSource(
            new WireSource(spec), WatermarkStrategy.noWatermarks(), "wire", TypeInformation.of(Event.class));
        int[] places = {1};
        LateRows late = new LateRows() {
            @Override
            public <T> void count(DataStream<T> dropped) {
                dropped.flatMap(new Measure.Late<T>(spec, places[0]++)).returns(Types.VOID).name("late").sinkTo(new DiscardingSink<>());
            }
        };
        DataStream<Result> answer = QUERIES.get(spec.query).over(events, spec, late);
        if (spec.measured) {
            answer.flatMap(new Measure<Result>(spec, 0)).returns(Types.VOID).name("measure").sinkTo(new DiscardingSink<>());
        } else {
            answer.sinkTo(new DiscardingSink<>());
        }
        environment.execute("streamgauge " + spec.query);
    }
}
