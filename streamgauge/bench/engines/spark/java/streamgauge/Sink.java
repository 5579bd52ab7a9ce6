package streamgauge;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The measuring sink, next to the last operator. Tasks may run twice; only what Spark commits is reported. */
public final class Sink implements TableProvider {
    @Override
    public StructType inferSchema(CaseInsensitiveStringMap given) {
        return new StructType();
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new Results();
    }

    private record Results() implements SupportsWrite {
        @Override
        public String name() {
            return "streamgauge-sink";
        }

        @Override
        @SuppressWarnings("deprecation") // its successor needs a schema, and this table takes any
        public StructType schema() {
            return new StructType();
        }

        @Override
        public Set<TableCapability> capabilities() {
            return Set.of(TableCapability.STREAMING_WRITE, TableCapability.ACCEPT_ANY_SCHEMA);
        }

        @Override
        public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
            return new Builder(new Options(info.options()), info.schema());
        }
    }

    private record Builder(Options options, StructType schema) implements SupportsStreamingUpdateAsAppend {
        @Override
        public Write build() {
            return new Write() {
                @Override
                public StreamingWrite toStreaming() {
                    return new Epochs(options, schema);
                }
            };
        }
    }

    /** What a task measured, with the clock of its host. */
    record Measured(Tally tally, long[] clock) implements WriterCommitMessage {}

    private record Factory(Options options, StructType schema) implements StreamingDataWriterFactory {
        private static final long serialVersionUID = 1;

        @Override
        public DataWriter<InternalRow> createWriter(int partition, long task, long epoch) {
            return new SinkWriter(options, schema);
        }
    }

    private record Epochs(Options options, StructType schema) implements StreamingWrite {
        @Override
        public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
            return new Factory(options, schema);
        }

        @Override
        public void commit(long epoch, WriterCommitMessage[] messages) {
            Tally total = new Tally();
            long[] worst = null;
            for (WriterCommitMessage message : messages) {
                Measured one = (Measured) message;
                total.merge(one.tally);
                if (one.clock != null && (worst == null || bound(one.clock) > bound(worst))) {
                    worst = one.clock;
                }
            }
            long[] clock = worst;
            try {
                Wires.onceMore(options.endpoints[0], options.attempt, wire -> {
                    wire.report(options.attempt, epoch, total.body(clock));
                    return null;
                });
            } catch (IOException problem) {
                throw new UncheckedIOException(problem);
            }
        }

        private static long bound(long[] clock) {
            return Math.abs(clock[0]) + clock[1];
        }

        @Override
        public void abort(long epoch, WriterCommitMessage[] messages) {}
    }
}
