package streamgauge;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.math.BigInteger;

/** What an epoch adds, or a part of it: the body of a report as in docs/protocol.md. */
final class Tally implements Serializable {
    private static final long serialVersionUID = 1;
    long rows;
    private long negative;
    private long leastNs; // the lowest latency, if it is negative
    private long checksum;
    private long firstNs; // emission of the first row
    private long lastNs;
    private long sinceFirstNs; // sum over the emissions of all rows
    private final Histogram event = new Histogram();
    private final Histogram processing = new Histogram();

    /** Adds a row that is emitted now; hash: of Checksum. */
    void add(long eventWall, long offeredWall, long hash) {
        add(Clock.now(), eventWall, offeredWall, hash);
    }

    private void add(long now, long eventWall, long offeredWall, long hash) {
        if (rows++ == 0) {
            firstNs = now;
        }
        lastNs = now;
        sinceFirstNs += now - firstNs;
        if (now < eventWall || now < offeredWall) {
            negative++; // in neither histogram
            leastNs = Math.min(leastNs, now - Math.max(eventWall, offeredWall));
        } else {
            event.add(now - eventWall);
            processing.add(now - offeredWall);
        }
        checksum += hash;
    }

    void merge(Tally other) {
        if (other.rows == 0) {
            return;
        }
        long first = rows == 0 ? other.firstNs : Math.min(firstNs, other.firstNs);
        sinceFirstNs += rows * (firstNs - first) + other.sinceFirstNs + other.rows * (other.firstNs - first);
        lastNs = rows == 0 ? other.lastNs : Math.max(lastNs, other.lastNs);
        firstNs = first;
        rows += other.rows;
        negative += other.negative;
        leastNs = Math.min(leastNs, other.leastNs);
        checksum += other.checksum;
        event.merge(other.event);
        processing.merge(other.processing);
    }

    /** clock: the driver's minus ours, and the bound of the error, in ns; null if unknown. */
    ObjectNode body(long[] clock) {
        ObjectNode body = Wire.JSON.createObjectNode();
        body.put("rows", rows).put("negative", negative).put("least_ns", leastNs);
        body.put("checksum", new BigInteger(Long.toUnsignedString(checksum)));
        body.set("event_latency", event.toJson());
        body.set("processing_latency", processing.toJson());
        if (rows > 0) {
            body.putArray("emitted_wall_ns").add(firstNs).add(lastNs);
            body.put("emitted_mean_wall_ns", firstNs + sinceFirstNs / rows);
        } else {
            body.putArray("emitted_wall_ns");
            body.putNull("emitted_mean_wall_ns");
        }
        if (clock == null) {
            body.putNull("clock_offset_ns");
        } else {
            body.putArray("clock_offset_ns").add(clock[0]).add(clock[1]);
        }
        return body;
    }
}
