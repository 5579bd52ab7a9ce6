package streamgauge;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;

/** The histogram of streamgauge/base/histogram.py: 128 buckets in each power of two. */
final class Histogram implements Serializable {
    private static final long serialVersionUID = 1;
    private static final int BITS = 7;
    private static final int FIRST = (1023 << BITS) - 1;
    private final int[] counts = new int[(63 << BITS) + 2];
    private long count;
    private long sum;
    private long min = Long.MAX_VALUE;
    private long max = Long.MIN_VALUE;

    /** Adds a latency in ns, which is not negative. */
    void add(long value) {
        int bucket = (int) (Double.doubleToRawLongBits((double) value) >>> (52 - BITS)) - FIRST;
        counts[Math.max(bucket, 0)]++;
        count++;
        sum += value; // an epoch of some seconds: far from 63 bits
        min = Math.min(min, value);
        max = Math.max(max, value);
    }

    void merge(Histogram other) {
        for (int i = 0; i < counts.length; i++) {
            counts[i] += other.counts[i];
        }
        count += other.count;
        sum += other.sum;
        min = Math.min(min, other.min);
        max = Math.max(max, other.max);
    }

    ObjectNode toJson() {
        ObjectNode made = Wire.JSON.createObjectNode();
        made.put("count", count).put("negative", 0).put("sum", sum);
        if (count == 0) {
            made.putNull("min").putNull("max");
        } else {
            made.put("min", min).put("max", max);
        }
        ArrayNode buckets = made.putArray("buckets");
        ArrayNode found = made.putArray("counts");
        for (int i = 0; i < counts.length; i++) {
            if (counts[i] > 0) {
                buckets.add(i);
                found.add(counts[i]);
            }
        }
        return made;
    }
}
