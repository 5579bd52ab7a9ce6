package streamgauge;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/** The driver's queues as a source (FLIP-27): a split for each; offsets and watermarks are part of checkpoints. */
final class WireSource implements Source<Event, Split, List<Split>> {
    private static final long serialVersionUID = 1;
    private final Spec spec;

    WireSource(Spec spec) {
        this.spec = spec;
    }

    @Override
    public Boundedness getBoundedness() {
        return Boundedness.CONTINUOUS_UNBOUNDED;
    }

    @Override
    public SourceReader<Event, Split> createReader(SourceReaderContext context) {
        return new WireReader(spec, context.getIndexOfSubtask());
    }

    @Override
    public SplitEnumerator<Split, List<Split>> createEnumerator(SplitEnumeratorContext<Split> context) {
        List<Split> queues = new ArrayList<>();
        for (int endpoint = 0; endpoint < spec.endpoints.length; endpoint++) {
            for (int partition = 0; partition < spec.endpoints[endpoint].partitions(); partition++) {
                queues.add(new Split(endpoint, partition, queues.size()));
            }
        }
        return new Enumerator(context, queues);
    }

    @Override
    public SplitEnumerator<Split, List<Split>> restoreEnumerator(SplitEnumeratorContext<Split> context, List<Split> left) {
        return new Enumerator(context, left);
    }

    @Override
    public SimpleVersionedSerializer<Split> getSplitSerializer() {
        return new Split.Serializer();
    }

    @Override
    public SimpleVersionedSerializer<List<Split>> getEnumeratorCheckpointSerializer() {
        return new Split.ListSerializer();
    }

    /**
     * Deals the queues out in turns, each once; there are never more, and none ends. So `signalNoMoreSplits` is never
     * right: a reader would end, and after a restart with other readers the queues of its checkpoint with it.
     */
    private static final class Enumerator implements SplitEnumerator<Split, List<Split>> {
        private final SplitEnumeratorContext<Split> context;
        private final List<Split> left;

        Enumerator(SplitEnumeratorContext<Split> context, List<Split> left) {
            this.context = context;
            this.left = new ArrayList<>(left);
        }

        @Override
        public void start() {}

        @Override
        public void handleSplitRequest(int subtask, String host) {}

        @Override
        public void addSplitsBack(List<Split> splits, int subtask) {
            left.addAll(splits);
            if (context.registeredReaders().containsKey(subtask)) {
                addReader(subtask);
            }
        }

        @Override
        public void addReader(int subtask) {
            for (Split split : List.copyOf(left)) {
                if (split.queue % context.currentParallelism() == subtask) {
                    context.assignSplit(split, subtask);
                    left.remove(split);
                }
            }
        }

        @Override
        public List<Split> snapshotState(long checkpoint) {
            return List.copyOf(left);
        }

        @Override
        public void close() {}
    }
}
