package streamgauge;

import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads a queue row by row, until the long batch of Real-time Mode is over. */
final class RealTimeReader implements SupportsRealTimeRead<InternalRow> {
    /** Makes readers, in the tasks. */
    record Factory(String attempt, String[] columns) implements PartitionReaderFactory {
        @Override
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            return new RealTimeReader((Rows.Range) partition, attempt, columns);
        }
    }

    private static final RecordStatus ROW = RecordStatus.newStatusWithoutArrivalTime(true);
    private static final RecordStatus NONE = RecordStatus.newStatusWithoutArrivalTime(false);
    private static final int READ_ROWS = 20_000;
    private static final int FEW_ROWS = 1_000;
    private static final int WAIT_MS = 20;
    private static final int LINGER_MS = 1; // after an answer of few rows: asking for each costs more than it brings
    private static final long PLANNED_EVERY_NS = 50_000_000;

    private final Rows.Range range;
    private final String attempt;
    private final String[] columns;
    private Wire wire;
    private Wire.Answer answer;
    private ColumnarBatch batch;
    private int at; // the current row within the batch
    private int rows; // of the batch
    private int answered;
    private long next; // the row after the current one
    private long told = System.nanoTime(); // when `planned` was said
    private boolean again;

    RealTimeReader(Rows.Range range, String attempt, String[] columns) {
        this.range = range;
        this.attempt = attempt;
        this.columns = columns;
        next = range.first();
    }

    @Override
    public RecordStatus nextWithTimeout(Long timeoutMs) throws IOException {
        return nextWithTimeout(0L, timeoutMs);
    }

    @Override
    public RecordStatus nextWithTimeout(Long nowMs, Long timeoutMs) throws IOException {
        if (at + 1 < rows) {
            at++;
            next++;
            return ROW;
        }
        long deadline = System.nanoTime() + timeoutMs * 1_000_000;
        while (true) {
            try {
                if (load(deadline)) {
                    again = false;
                    next++;
                    return ROW;
                }
                if (System.nanoTime() >= deadline) {
                    return NONE;
                }
            } catch (Wire.Refused refused) {
                throw refused;
            } catch (IOException problem) {
                abandon();
                if (again || problem instanceof ClosedByInterruptException) {
                    throw problem;
                }
                again = true; // a connection that breaks is made anew, once
            }
        }
    }

    /** Loads rows, if there are any soon, and stands on the first. */
    private boolean load(long deadline) throws IOException {
        at = rows = 0;
        if (answer == null) {
            ask(deadline);
        }
        while (answer.next()) {
            rows = answer.root().getRowCount();
            if (rows > 0) {
                answered += rows;
                batch.setNumRows(rows);
                return true;
            }
        }
        answer.close();
        answer = null;
        linger();
        return false;
    }

    private void ask(long deadline) throws IOException {
        if (wire == null) {
            // idle connections broke, too
            wire = again ? new Wire(range.endpoint(), attempt) : Wires.take(range.endpoint(), attempt);
        }
        long now = System.nanoTime();
        if (now - told > PLANNED_EVERY_NS) {
            wire.offsets("planned", Map.of(range.partition(), next));
            told = now;
        }
        long leftMs = Math.max(0, (deadline - now) / 1_000_000);
        answer = wire.read(range.partition(), next, READ_ROWS, (int) Math.min(WAIT_MS, leftMs));
        answered = 0;
        batch = new ColumnarBatch(LinkReader.vectors(answer.root(), columns));
    }

    private void linger() throws IOException {
        if (answered < FEW_ROWS) {
            try {
                Thread.sleep(LINGER_MS);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                throw new ClosedByInterruptException();
            }
        }
    }

    @Override
    public boolean next() {
        throw new UnsupportedOperationException("rows are asked for with a time limit");
    }

    @Override
    public InternalRow get() {
        return batch.getRow(at);
    }

    @Override
    public PartitionOffset getOffset() {
        return new Rows.Reached(range.queue(), next);
    }

    private void abandon() {
        if (answer != null) {
            try {
                answer.close();
            } catch (IOException ignored) {
                // its memory is freed, and nobody reads on
            }
            answer = null;
        }
        at = rows = 0;
        if (wire != null) {
            wire.close();
            wire = null;
        }
    }

    @Override
    public void close() {
        if (wire != null && answer == null) {
            Wires.give(range.endpoint(), attempt, wire);
            wire = null;
        }
        abandon(); // whoever leaves an answer early leaves its connection
    }
}
