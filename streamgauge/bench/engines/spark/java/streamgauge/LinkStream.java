package streamgauge;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxRows;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;

/**
 * Plans micro-batches, as streamgauge/bench/engines/spark/source.py does, where the rules are explained.
 *
 * Rows are freed when Spark asks for the latest offset: the batch that ended at its start is then done. Of two readers
 * of one stream only the lead frees, one call later.
 */
class LinkStream implements MicroBatchStream, SupportsTriggerAvailableNow {
    private record Queue(int endpoint, int partition) {}

    protected final Options options;
    protected final StructType schema;
    private List<Queue> queues;
    private Rows asked = new Rows(Map.of());
    private Rows freed = new Rows(Map.of());
    private Rows planned = new Rows(Map.of());
    private Rows target;

    LinkStream(Options options, StructType schema) {
        this.options = options;
        this.schema = schema;
    }

    @Override
    public Offset initialOffset() {
        Map<Integer, Long> found = new HashMap<>();
        for (int queue = 0; queue < queues().size(); queue++) {
            found.put(queue, 0L);
        }
        return new Rows(found);
    }

    @Override
    public Offset latestOffset() {
        throw new UnsupportedOperationException("a row cap needs latestOffset(start, limit)");
    }

    @Override
    public ReadLimit getDefaultReadLimit() {
        return options.batchRows == 0 ? ReadLimit.allAvailable() : ReadLimit.maxRows(options.batchRows);
    }

    @Override
    public Offset latestOffset(Offset from, ReadLimit limit) {
        Rows start = (Rows) from;
        free(options.role.equals("alone") ? start : asked);
        asked = start;
        // an equal and fixed share for each queue, so that two readers of one stream plan alike
        long most = limit instanceof ReadMaxRows cap ? cap.maxRows() : Long.MAX_VALUE;
        long quota = Math.max(1, most / start.next.size());
        Map<Integer, Long> end = new HashMap<>();
        (target == null ? offered() : target).next.forEach((queue, row) -> {
            long begin = start.of(queue);
            end.put(queue, Math.max(begin, row - begin > quota ? begin + quota : row));
        });
        Rows found = new Rows(end);
        if (!found.next.equals(start.next)) {
            plan(found);
        }
        return found;
    }

    @Override
    public void prepareForTriggerAvailableNow() {
        target = offered();
    }

    @Override
    public InputPartition[] planInputPartitions(Offset from, Offset to) {
        Rows end = (Rows) to;
        plan(end); // not planned yet after a restart
        List<InputPartition> found = new ArrayList<>();
        end.next.forEach((queue, last) -> {
            long first = ((Rows) from).of(queue);
            if (first < last) {
                found.add(range(queue, first, last));
            }
        });
        return found.toArray(new InputPartition[0]);
    }

    protected Rows.Range range(int queue, long first, long last) {
        Queue place = queues().get(queue);
        return new Rows.Range(options.endpoints[place.endpoint], queue, place.partition, first, last);
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new LinkReader.Factory(options.attempt, schema.names());
    }

    @Override
    public Offset deserializeOffset(String json) {
        return Rows.of(json);
    }

    @Override
    public void commit(Offset end) {} // comes only with the next batch, which may never come

    @Override
    public void stop() {}

    private List<Queue> queues() {
        if (queues == null) {
            List<Queue> found = new ArrayList<>();
            for (int endpoint = 0; endpoint < options.endpoints.length; endpoint++) {
                int count = on(endpoint, Wire::partitions);
                for (int partition = 0; partition < count; partition++) {
                    found.add(new Queue(endpoint, partition));
                }
            }
            queues = found;
        }
        return queues;
    }

    protected final Rows offered() {
        Map<Integer, Long> found = new HashMap<>();
        for (int endpoint = 0; endpoint < options.endpoints.length; endpoint++) {
            on(endpoint, wire -> wire.ask(Wire.JSON.createObjectNode().put("verb", "latest"))).get("rows")
                .forEach(row -> found.put(found.size(), row.asLong()));
        }
        return new Rows(found);
    }

    private void plan(Rows end) {
        if (!end.next.equals(planned.next) && !options.role.equals("follow")) {
            tell("planned", end.next);
        }
        planned = end;
    }

    /** Tells the drivers that rows below these will not be read again. */
    protected final void free(Rows done) {
        boolean any = done.next.values().stream().anyMatch(row -> row > 0);
        if (any && !done.next.equals(freed.next) && !options.role.equals("follow")) {
            tell("commit", done.next);
        }
        freed = done;
    }

    private void tell(String verb, Map<Integer, Long> rows) {
        Map<Integer, Map<Integer, Long>> each = new TreeMap<>();
        rows.forEach((queue, row) -> {
            Queue place = queues().get(queue);
            each.computeIfAbsent(place.endpoint, none -> new TreeMap<>()).put(place.partition, row);
        });
        each.forEach((endpoint, offsets) -> on(endpoint, wire -> {
            wire.offsets(verb, offsets);
            return null;
        }));
    }

    private <T> T on(int endpoint, Wires.Call<T> call) {
        try {
            return Wires.onceMore(options.endpoints[endpoint], options.attempt, call);
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
    }
}
