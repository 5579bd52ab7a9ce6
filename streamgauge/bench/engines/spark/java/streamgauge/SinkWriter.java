package streamgauge;

import java.math.BigInteger;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/** Measures the rows of one task, each as it comes: latencies, and the checksum of its result columns. */
final class SinkWriter implements DataWriter<InternalRow> {
    private static final long DAY_US = 86_400_000_000L;

    private enum Kind { LONG, INT, SHORT, BYTE, BOOLEAN, DOUBLE, FLOAT, DATE, DECIMAL, TEXT, BINARY }

    private final Options options;
    private final Tally tally = new Tally();
    private final int eventWall;
    private final int offeredWall;
    private final int sentinel; // −1: there is none
    private final int[] places; // of the result's columns
    private final Kind[] kinds;
    private final DataType[] types;
    private final long[] salts;

    SinkWriter(Options options, StructType schema) {
        this.options = options;
        eventWall = schema.fieldIndex("event_wall");
        offeredWall = schema.fieldIndex("offered_wall");
        sentinel = Arrays.asList(schema.names()).indexOf("sentinel");
        int[] found = new int[schema.length()];
        int count = 0;
        for (int i = 0; i < schema.length(); i++) {
            if (i != eventWall && i != offeredWall && i != sentinel) {
                found[count++] = i;
            }
        }
        places = Arrays.copyOf(found, count);
        kinds = new Kind[count];
        types = new DataType[count];
        salts = new long[count];
        for (int i = 0; i < count; i++) {
            String name = schema.names()[places[i]];
            types[i] = schema.apply(places[i]).dataType();
            kinds[i] = kind(types[i]);
            if (!options.salts.containsKey(name)) {
                throw new IllegalArgumentException("option salts: found no " + name);
            }
            salts[i] = options.salts.get(name);
        }
    }

    private static Kind kind(DataType type) {
        if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) {
            return Kind.LONG;
        } else if (type instanceof StringType) {
            return Kind.TEXT;
        } else if (type instanceof DoubleType) {
            return Kind.DOUBLE;
        } else if (type instanceof IntegerType) {
            return Kind.INT;
        } else if (type instanceof BooleanType) {
            return Kind.BOOLEAN;
        } else if (type instanceof DecimalType) {
            return Kind.DECIMAL;
        } else if (type instanceof DateType) {
            return Kind.DATE;
        } else if (type instanceof BinaryType) {
            return Kind.BINARY;
        } else if (type instanceof ShortType) {
            return Kind.SHORT;
        } else if (type instanceof ByteType) {
            return Kind.BYTE;
        } else if (type instanceof FloatType) {
            return Kind.FLOAT;
        }
        throw new IllegalArgumentException(
            "found a result column of type " + type.sql() + ", allowed: numbers, texts, timestamps, dates");
    }

    @Override
    public void write(InternalRow row) {
        if (sentinel >= 0 && row.getBoolean(sentinel)) {
            return;
        }
        long sum = 0;
        for (int i = 0; i < places.length; i++) {
            sum += Checksum.mix(hash(row, i) + salts[i]);
        }
        tally.add(row.getLong(eventWall), row.getLong(offeredWall), Checksum.mix(sum));
    }

    private long hash(InternalRow row, int column) {
        int place = places[column];
        if (row.isNullAt(place)) {
            return Checksum.NULL;
        }
        return switch (kinds[column]) {
            case LONG -> row.getLong(place);
            case INT -> row.getInt(place);
            case SHORT -> row.getShort(place);
            case BYTE -> row.getByte(place);
            case BOOLEAN -> row.getBoolean(place) ? 1 : 0;
            case DOUBLE -> Checksum.hash(row.getDouble(place));
            case FLOAT -> Checksum.hash((double) row.getFloat(place));
            case DATE -> row.getInt(place) * DAY_US; // as the timestamp of its midnight
            case DECIMAL -> decimal(row, place, (DecimalType) types[column]);
            case TEXT -> hash(row.getUTF8String(place));
            case BINARY -> hash(UTF8String.fromBytes(row.getBinary(place)));
        };
    }

    private static long hash(UTF8String text) {
        long sum = 0;
        long power = 1;
        int bytes = text.numBytes();
        for (int i = 0; i < bytes; i++) {
            sum += ((text.getByte(i) & 0xFFL) + 1) * power;
            power *= Checksum.BASE;
        }
        return sum;
    }

    private static long decimal(InternalRow row, int place, DecimalType type) {
        Decimal found = row.getDecimal(place, type.precision(), type.scale());
        BigInteger number = found.toJavaBigDecimal().setScale(type.scale()).unscaledValue();
        return Checksum.mix(number.longValue() + type.scale()) + number.shiftRight(64).longValue();
    }

    @Override
    public WriterCommitMessage commit() {
        return new Sink.Measured(tally, Wires.clock(options.endpoints[0], options.attempt));
    }

    @Override
    public void abort() {}

    @Override
    public void close() {}
}
