package streamgauge;

import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;

/** Offsets: the next row of each queue, numbered over all endpoints. */
final class Rows extends Offset {
    final TreeMap<Integer, Long> next;

    Rows(Map<Integer, Long> next) {
        this.next = new TreeMap<>(next);
    }

    static Rows of(String json) {
        TreeMap<Integer, Long> found = new TreeMap<>();
        try {
            Wire.JSON.readTree(json).properties()
                .forEach(entry -> found.put(Integer.parseInt(entry.getKey()), entry.getValue().asLong()));
        } catch (java.io.IOException problem) {
            throw new IllegalArgumentException("offset: found " + json, problem);
        }
        return new Rows(found);
    }

    long of(int queue) {
        return next.getOrDefault(queue, 0L);
    }

    @Override
    public String json() {
        return Wire.JSON.valueToTree(next).toString();
    }

    /** Rows first … end − 1 of a queue; without a last one in real-time mode. */
    record Range(Wire.Endpoint endpoint, int queue, int partition, long first, long end) implements InputPartition {}

    /** Where a queue of real-time mode has come to. */
    record Reached(int queue, long row) implements PartitionOffset {}
}
