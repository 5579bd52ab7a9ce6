package streamgauge;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The driver's queues as a streaming source of Spark: offsets are row numbers, rows come as Arrow batches. */
public final class Link implements TableProvider {
    @Override
    public StructType inferSchema(CaseInsensitiveStringMap given) {
        Options options = new Options(given);
        try {
            return ArrowUtils.fromArrowSchema(Wires.onceMore(options.endpoints[0], options.attempt, Wire::schema));
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new Queues(schema);
    }

    @SuppressWarnings("deprecation") // the successor of Table.schema takes no StructType
    private record Queues(StructType schema) implements SupportsRead {
        @Override
        public String name() {
            return "streamgauge";
        }

        @Override
        public Set<TableCapability> capabilities() {
            return Set.of(TableCapability.MICRO_BATCH_READ);
        }

        @Override
        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap given) {
            return () -> new Queue(schema, new Options(given));
        }
    }

    private record Queue(StructType readSchema, Options options) implements Scan {
        @Override
        public MicroBatchStream toMicroBatchStream(String checkpoint) {
            return options.realTime ? new RealTimeStream(options, readSchema) : new LinkStream(options, readSchema);
        }

        @Override
        public ColumnarSupportMode columnarSupportMode() {
            return options.realTime ? ColumnarSupportMode.UNSUPPORTED : ColumnarSupportMode.SUPPORTED;
        }
    }
}
