package streamgauge;

import java.io.IOException;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.util.Collector;

/**
 * Measures each row of an answer when it is emitted, and reports to the driver what a checkpoint has made final.
 *
 * An epoch is a checkpoint's number × 1000 plus the place of the reporter. What was measured before a checkpoint is part
 * of it: after a restart it is reported again, if it was not, and the driver counts an epoch once.
 */
class Measure<T> extends RichFlatMapFunction<T, Void> implements CheckpointedFunction, CheckpointListener {
    private static final long serialVersionUID = 1;
    protected final Spec spec;
    private final int place;
    protected transient Tally tally;
    private transient List<String> pending; // JSON of {"epoch": …, "body": …}
    private transient ListState<String> kept;
    private transient Wire wire;
    private transient long[] clock;

    /** What an epoch adds. */
    static final class Tally {
        long rows;
        long negative;
        long late;
        long checksum;
        long firstNs;
        long lastNs;
        BigInteger sumNs = BigInteger.ZERO;
        private long sum; // of emissions since the first one
        final Histogram event = new Histogram();
        final Histogram processing = new Histogram();

        void add(Result result, long[] salts) {
            long now = Clock.now();
            if (rows++ == 0) {
                firstNs = now;
            }
            lastNs = now;
            sum += now - firstNs;
            if (!event.add(now - result.eventWall)) {
                negative++;
            }
            if (!processing.add(now - result.offeredWall)) {
                negative++;
            }
            checksum += Checksum.row(result.values, salts);
        }

        ObjectNode body(long[] clock) {
            ObjectNode body = Wire.JSON.createObjectNode();
            body.put("rows", rows).put("negative", negative);
            body.put("checksum", new BigInteger(Long.toUnsignedString(checksum)));
            body.set("event_latency", event.toJson());
            body.set("processing_latency", processing.toJson());
            if (rows > 0) {
                body.putArray("emitted_wall_ns").add(firstNs).add(lastNs);
                body.put("emitted_mean_wall_ns", firstNs + sum / rows);
            } else {
                body.putArray("emitted_wall_ns");
                body.putNull("emitted_mean_wall_ns");
            }
            body.putArray("clock_offset_ns").add(clock[0]).add(clock[1]);
            body.putObject("batch").put("late", late);
            return body;
        }
    }

    /** place: tells apart the reporters of a job, each with up to 100 subtasks. */
    Measure(Spec spec, int place) {
        this.spec = spec;
        this.place = place;
    }

    @Override
    public void open(OpenContext context) throws Exception {
        tally = new Tally();
        clock = wire().clockOffset();
    }

    @Override
    public void flatMap(T row, Collector<Void> none) throws Exception {
        Result result = (Result) row;
        if (!result.sentinel) {
            tally.add(result, spec.salts);
        }
    }

    @Override
    public void initializeState(FunctionInitializationContext context) throws Exception {
        kept = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("pending", Types.STRING));
        pending = new ArrayList<>();
        for (String one : kept.get()) {
            pending.add(one);
        }
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) throws Exception {
        if (tally.rows > 0 || tally.late > 0) {
            int subtask = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
            ObjectNode made = Wire.JSON.createObjectNode();
            made.put("epoch", context.getCheckpointId() * 1000 + place * 100 + subtask);
            made.set("body", tally.body(clock));
            pending.add(made.toString());
            tally = new Tally();
        }
        kept.update(pending);
    }

    @Override
    public void notifyCheckpointComplete(long checkpoint) throws Exception {
        for (Iterator<String> left = pending.iterator(); left.hasNext(); left.remove()) {
            ObjectNode one = (ObjectNode) Wire.JSON.readTree(left.next());
            if (one.get("epoch").asLong() / 1000 > checkpoint) {
                break;
            }
            report(one);
        }
    }

    private void report(ObjectNode one) throws IOException {
        try {
            wire().report(spec.attempt, one.get("epoch").asLong(), one.get("body"));
        } catch (Wire.Refused refused) {
            throw refused;
        } catch (IOException broken) { // once more, over a new connection
            close();
            wire().report(spec.attempt, one.get("epoch").asLong(), one.get("body"));
        }
    }

    private Wire wire() throws IOException {
        if (wire == null) {
            wire = new Wire(spec.endpoints[0], spec.attempt);
        }
        return wire;
    }

    @Override
    public void close() {
        if (wire != null) {
            wire.close();
            wire = null;
        }
    }

    /** Counts what an operator has dropped as too late. */
    static final class Late<T> extends Measure<T> {
        private static final long serialVersionUID = 1;

        Late(Spec spec, int place) {
            super(spec, place);
        }

        @Override
        public void flatMap(T row, Collector<Void> none) {
            tally.late++;
        }
    }
}
