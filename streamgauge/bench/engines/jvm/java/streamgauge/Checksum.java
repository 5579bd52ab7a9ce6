package streamgauge;

import java.nio.charset.StandardCharsets;

/** The fingerprint of streamgauge/bench/oracle/checksum.py, row by row. */
final class Checksum {
    static final long BASE = 0x100000001B3L;
    static final long NULL = 0x9E3779B97F4A7C15L;

    private Checksum() {}

    /** The hash of a row; salts: of its columns, in their order. The checksum is the sum over all rows. */
    static long row(Object[] values, long[] salts) {
        long sum = 0;
        for (int i = 0; i < values.length; i++) {
            sum += mix(hash(values[i]) + salts[i]);
        }
        return mix(sum);
    }

    private static long hash(Object value) {
        if (value == null) {
            return NULL;
        }
        if (value instanceof Long number) {
            return number;
        }
        if (value instanceof Double number) {
            return hash((double) number);
        }
        if (value instanceof Boolean truth) {
            return truth ? 1 : 0;
        }
        return hash(((String) value).getBytes(StandardCharsets.UTF_8));
    }

    static long hash(double number) {
        return Double.doubleToLongBits(number == 0 ? 0.0 : number); // one NaN, no negative zero
    }

    private static long hash(byte[] text) {
        long sum = 0;
        long power = 1;
        for (byte one : text) {
            sum += ((one & 0xFFL) + 1) * power;
            power *= BASE;
        }
        return sum;
    }

    /** The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014). */
    static long mix(long x) {
        x = (x ^ (x >>> 30)) * 0xBF58476D1CE4E5B9L;
        x = (x ^ (x >>> 27)) * 0x94D049BB133111EBL;
        return x ^ (x >>> 31);
    }
}
