package streamgauge;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeMode;
import org.apache.spark.sql.types.StructType;

/** Plans the long batches of Spark's Real-time Mode: where each ends, its readers decide. */
final class RealTimeStream extends LinkStream implements SupportsRealTimeMode {
    RealTimeStream(Options options, StructType schema) {
        super(options, schema);
    }

    @Override
    public Offset latestOffset(Offset start, ReadLimit limit) {
        return offered(); // for Spark's information; readers say what is planned
    }

    @Override
    public InputPartition[] planInputPartitions(Offset from) {
        Rows start = (Rows) from;
        free(start); // the batch that ended there is done
        return start.next.entrySet().stream()
            .map(entry -> range(entry.getKey(), entry.getValue(), Long.MAX_VALUE)).toArray(InputPartition[]::new);
    }

    @Override
    public Offset mergeOffsets(PartitionOffset[] reached) {
        Map<Integer, Long> found = new HashMap<>();
        for (PartitionOffset one : reached) {
            found.put(((Rows.Reached) one).queue(), ((Rows.Reached) one).row());
        }
        return new Rows(found);
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new RealTimeReader.Factory(options.attempt, schema.names());
    }
}
