package streamgauge;

import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Set;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.transformations.PartitionTransformation;

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
        arrange(environment, spec);
        environment.execute("streamgauge " + spec.query);
    }

    /** Names each operator, so that a savepoint finds it: Flink's own names follow from the numbers of subtasks. */
    private static void arrange(StreamExecutionEnvironment environment, Spec spec) {
        int queues = Arrays.stream(spec.endpoints).mapToInt(Wire.Endpoint::partitions).sum();
        Set<Transformation<?>> steps = new LinkedHashSet<>();
        for (Transformation<?> last : environment.getTransformations()) {
            limit(last, queues);
            steps.addAll(last.getTransitivePredecessors());
        }
        int number = 0;
        for (Transformation<?> step : steps) {
            step.setUid(spec.query + " " + number++);
        }
    }

    /**
     * Gives the source no more subtasks than there are queues: a reader without one holds back the watermark until it is
     * known to be idle, and after a restart what is late would be taken for in time. What follows has as many, up to
     * a key, as a row that changes to another subtask may overtake a watermark.
     */
    private static void limit(Transformation<?> step, int queues) {
        step.getInputs().forEach(input -> limit(input, queues));
        if (step.getInputs().isEmpty()) {
            step.setParallelism(Math.min(step.getParallelism(), queues));
        } else if (step.getInputs().stream().noneMatch(PartitionTransformation.class::isInstance)) {
            step.setParallelism(step.getInputs().get(0).getParallelism());
        }
    }

    /** The events that concern the query. */
    private static DataStream<Event> read(DataStream<Event> events, Spec spec, LateRows late) {
        DataStream<Event> concerned = spec.reads.isEmpty() ? events : events.filter(new Reads(spec));
        return spec.inTime ? InTime.of(concerned, late) : concerned;
    }
}
