package streamgauge;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
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
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.util.Collector;

/**
 * Measures each row of an answer when it is emitted, and reports to the driver what a checkpoint has made final.
 *
 * An epoch is a checkpoint's number × EPOCHS plus the place of the reporter. What was measured before a checkpoint is part
 * of it: after a restart it is reported again, if it was not, and the driver counts an epoch once.
 */
class Measure<T> extends RichFlatMapFunction<T, Void> implements CheckpointedFunction, CheckpointListener {
    private static final long serialVersionUID = 1;
    private static final long SUBTASKS = 1_000; // a job that was rescaled has up to 200
    private static final long EPOCHS = 10 * SUBTASKS;
    protected final Spec spec;
    private final int place;
    private transient Tally tally;
    protected transient long late;
    private transient List<String> pending; // JSON of {"epoch": …, "body": …}
    private transient ListState<String> kept;
    private transient Wire wire;
    private transient long[] clock;
    private transient ArrayNode answer; // the rows since the last checkpoint, if they are kept

    /** place: tells apart the reporters of a job, each with up to SUBTASKS subtasks. */
    Measure(Spec spec, int place) {
        this.spec = spec;
        this.place = place;
    }

    @Override
    public void open(OpenContext context) throws Exception {
        tally = new Tally();
        late = 0;
        answer = Wire.JSON.createArrayNode();
        clock = wire().clockOffset();
    }

    @Override
    public void flatMap(T row, Collector<Void> none) throws Exception {
        Result result = (Result) row;
        if (!result.sentinel) {
            tally.add(result.eventWall, result.offeredWall, Checksum.row(result.values, spec.salts));
            if (spec.keepsRows) {
                answer.add(Wire.JSON.valueToTree(result.values));
            }
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
        if (tally.rows > 0 || late > 0) {
            int subtask = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
            ObjectNode made = Wire.JSON.createObjectNode();
            made.put("epoch", context.getCheckpointId() * EPOCHS + place * SUBTASKS + subtask);
            ObjectNode body = tally.body(clock);
            body.putObject("batch").put("late", late);
            made.set("body", body);
            made.set("answer", answer);
            pending.add(made.toString());
            answer = Wire.JSON.createArrayNode();
            tally = new Tally();
            late = 0;
        }
        kept.update(pending);
    }

    @Override
    public void notifyCheckpointComplete(long checkpoint) throws Exception {
        for (Iterator<String> left = pending.iterator(); left.hasNext(); left.remove()) {
            ObjectNode one = (ObjectNode) Wire.JSON.readTree(left.next());
            if (one.get("epoch").asLong() / EPOCHS > checkpoint) {
                break;
            }
            report(one);
        }
    }

    private void report(ObjectNode one) throws IOException {
        if (spec.keepsRows) { // once more after a crash: the same rows in the same file
            Files.writeString(Path.of(spec.account, "rows-" + one.get("epoch").asLong() + ".json"), one.get("answer").toString());
        }
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
            late++;
        }
    }
}
