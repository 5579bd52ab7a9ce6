package streamgauge;

import org.apache.flink.api.python.shaded.org.apache.arrow.vector.BigIntVector;
import org.apache.flink.api.python.shaded.org.apache.arrow.vector.BitVector;
import org.apache.flink.api.python.shaded.org.apache.arrow.vector.FieldVector;
import org.apache.flink.api.python.shaded.org.apache.arrow.vector.Float8Vector;
import org.apache.flink.api.python.shaded.org.apache.arrow.vector.TimeStampVector;
import org.apache.flink.api.python.shaded.org.apache.arrow.vector.VarCharVector;
import org.apache.flink.api.python.shaded.org.apache.arrow.vector.VectorSchemaRoot;

import java.nio.charset.StandardCharsets;

/** Rows of one Arrow batch, copied, as the batch's memory is used again for the next one. */
final class Rows {
    final long first; // number of the first row in its queue
    final int count;
    private final long[] seq;
    private final long[] eventTime;
    private final long[] timeUs;
    private final long[] eventWall;
    private final long[] offeredWall;
    private final boolean[] sentinel;
    private final Object[][] columns;

    Rows(VectorSchemaRoot root, Spec spec, long first) {
        this.first = first;
        count = root.getRowCount();
        seq = longs(root, "seq");
        eventTime = longs(root, "event_time");
        eventWall = longs(root, "event_wall");
        offeredWall = longs(root, "offered_wall");
        TimeStampVector times = (TimeStampVector) root.getVector("event_ts");
        timeUs = new long[count];
        for (int i = 0; i < count; i++) {
            timeUs[i] = times.get(i);
        }
        BitVector ends = (BitVector) root.getVector("sentinel");
        sentinel = new boolean[count];
        for (int i = 0; i < count; i++) {
            sentinel[i] = ends.get(i) != 0;
        }
        columns = new Object[count][spec.columns.length];
        for (int c = 0; c < spec.columns.length; c++) {
            read(root.getVector(spec.columns[c]), c);
        }
    }

    private long[] longs(VectorSchemaRoot root, String name) {
        BigIntVector vector = (BigIntVector) root.getVector(name);
        long[] found = new long[count];
        for (int i = 0; i < count; i++) {
            found[i] = vector.get(i);
        }
        return found;
    }

    private void read(FieldVector vector, int c) {
        for (int i = 0; i < count; i++) {
            if (vector.isNull(i)) {
                continue;
            }
            if (vector instanceof BigIntVector numbers) {
                columns[i][c] = numbers.get(i);
            } else if (vector instanceof Float8Vector numbers) {
                columns[i][c] = numbers.get(i);
            } else {
                columns[i][c] = new String(((VarCharVector) vector).get(i), StandardCharsets.UTF_8);
            }
        }
    }

    /** Fills the event from a row; returns its time in ms. */
    long fill(Event event, int row) {
        event.seq = seq[row];
        event.eventTime = eventTime[row];
        event.timeUs = timeUs[row];
        event.eventWall = eventWall[row];
        event.offeredWall = offeredWall[row];
        event.sentinel = sentinel[row];
        event.columns = columns[row];
        return Math.floorDiv(timeUs[row], 1000L);
    }
}
