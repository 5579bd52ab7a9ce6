package streamgauge;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/** A queue of a driver, and how far it has been emitted: what a checkpoint keeps of it. */
public final class Split implements SourceSplit {
    /** When its queues were at these rows, a reader emitted that watermark; numbers count from 0. */
    public record Mark(long number, Map<Integer, Long> rows, long watermarkMs) {}

    public int endpoint;
    public int partition; // within the endpoint
    public int queue; // over all endpoints
    public long row; // the next one to emit
    public long latestMs = Long.MIN_VALUE; // largest event time so far
    public List<Mark> marks = new ArrayList<>(); // of its reader, of which the account does not tell yet

    public long marksBefore; // how many marks there were before those

    public Split() {}

    Split(int endpoint, int partition, int queue) {
        this.endpoint = endpoint;
        this.partition = partition;
        this.queue = queue;
    }

    @Override
    public String splitId() {
        return Integer.toString(queue);
    }

    /** Writes splits as JSON. */
    static final class Serializer implements SimpleVersionedSerializer<Split> {
        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(Split split) throws IOException {
            return Wire.JSON.writeValueAsBytes(split);
        }

        @Override
        public Split deserialize(int version, byte[] bytes) throws IOException {
            return Wire.JSON.readValue(bytes, Split.class);
        }
    }

    /** Writes the splits that no reader has yet. */
    static final class ListSerializer implements SimpleVersionedSerializer<List<Split>> {
        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(List<Split> splits) throws IOException {
            return Wire.JSON.writeValueAsBytes(splits);
        }

        @Override
        public List<Split> deserialize(int version, byte[] bytes) throws IOException {
            return new ArrayList<>(List.of(Wire.JSON.readValue(bytes, Split[].class)));
        }
    }
}
