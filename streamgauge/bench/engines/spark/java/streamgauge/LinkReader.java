package streamgauge;

import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads a range of a queue: record batches as they come, without a copy. */
final class LinkReader implements PartitionReader<ColumnarBatch> {
    /** Makes readers, in the tasks. */
    record Factory(String attempt, String[] columns) implements PartitionReaderFactory {
        @Override
        public boolean supportColumnarReads(InputPartition partition) {
            return true;
        }

        @Override
        public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
            return new LinkReader((Rows.Range) partition, attempt, columns);
        }

        @Override
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            throw new UnsupportedOperationException("rows come in columns");
        }
    }

    private final Rows.Range range;
    private final String attempt;
    private final String[] columns;
    private long next;
    private boolean again;
    private Wire wire;
    private Wire.Answer answer;
    private long answered;
    private ColumnarBatch batch;

    LinkReader(Rows.Range range, String attempt, String[] columns) {
        this.range = range;
        this.attempt = attempt;
        this.columns = columns;
        next = range.first();
    }

    @Override
    public boolean next() throws IOException {
        while (answer != null || next < range.end()) {
            try {
                if (answer == null) {
                    ask();
                }
                if (answer.next()) {
                    int rows = answer.root().getRowCount();
                    batch.setNumRows(rows);
                    answered += rows;
                    next += rows;
                    return true;
                }
                finish();
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
        return false;
    }

    private void ask() throws IOException {
        if (wire == null) {
            // idle connections broke, too
            wire = again ? new Wire(range.endpoint(), attempt) : Wires.take(range.endpoint(), attempt);
        }
        answer = wire.read(range.partition(), next, range.end());
        answered = 0;
        batch = new ColumnarBatch(vectors(answer.root(), columns));
    }

    /** The columns of all batches of an answer: each is loaded into the same vectors. */
    static ColumnVector[] vectors(VectorSchemaRoot root, String[] columns) {
        ColumnVector[] found = new ColumnVector[columns.length];
        for (int i = 0; i < columns.length; i++) {
            found[i] = new ArrowColumnVector(root.getVector(columns[i]));
        }
        return found;
    }

    private void finish() throws IOException {
        answer.close();
        answer = null;
        if (answered == 0) {
            throw new IOException("no rows for " + next + " to " + range.end() + " of partition " + range.partition());
        }
    }

    private void abandon() throws IOException {
        if (answer != null) {
            answer.close();
            answer = null;
        }
        if (wire != null) {
            wire.close();
            wire = null;
        }
    }

    @Override
    public ColumnarBatch get() {
        return batch;
    }

    @Override
    public void close() throws IOException {
        if (wire != null && answer == null) {
            Wires.give(range.endpoint(), attempt, wire);
            wire = null;
        }
        abandon(); // whoever leaves an answer early leaves its connection
    }
}
