package streamgauge;

import java.io.Serializable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/** What a trial runs: the query with its parameters, the columns that it needs, where it reads and writes. */
public final class Spec implements Serializable {
    private static final long serialVersionUID = 1;
    final String attempt;
    final String query;
    final String code; // name of the class that answers it
    final String sql; // what `Sql` asks; null for the others
    final boolean inTime; // events below the watermark are left out before anything else
    final List<Map<String, Set<Object>>> reads; // for each frame, the rows that it reads: values by column; none: all
    final boolean keepsRows; // the answer's rows are written, too, not only measured
    final String key;
    final String value;
    final String keyType;
    final long windowUs;
    final long slideUs;
    final long offsetUs;
    final long watermarkMs;
    final String mark;
    final int top;
    final String[] columns; // that the query reads, besides those of the wire
    final String[] own; // the first of them, which SQL reads by their own names; the workload's key and value are not
    final String[] types; // string, int64 or float64, for each of them
    final String[] results; // names of the answer's columns
    final long[] salts; // for each of them, its salt of the checksum
    final Wire.Endpoint[] endpoints;
    final String account; // the folder for the logs of watermarks
    final boolean measured; // false: the answer goes nowhere, to see what measuring costs

    Spec(JsonNode told) {
        attempt = told.get("attempt").asText();
        query = told.get("query").asText();
        code = told.get("code").asText();
        sql = text(told, "sql");
        inTime = told.get("in_time").asBoolean();
        keepsRows = told.get("keeps_rows").asBoolean();
        reads = frames(told.get("reads"));
        key = text(told, "key");
        value = text(told, "value");
        windowUs = told.get("window_us").asLong();
        slideUs = told.get("slide_us").asLong();
        offsetUs = told.get("offset_us").asLong();
        watermarkMs = told.get("watermark_ms").asLong();
        mark = text(told, "mark");
        top = told.get("top").asInt();
        columns = texts(told.get("columns"));
        types = texts(told.get("types"));
        keyType = key == null ? "string" : types[Arrays.asList(columns).indexOf(key)];
        own = texts(told.path("own"));
        results = texts(told.get("results"));
        salts = new long[results.length];
        for (int i = 0; i < salts.length; i++) {
            salts[i] = Long.parseUnsignedLong(told.get("salts").get(i).asText());
        }
        endpoints = new Wire.Endpoint[told.get("endpoints").size()];
        for (int i = 0; i < endpoints.length; i++) {
            endpoints[i] = Wire.Endpoint.of(told.get("endpoints").get(i));
        }
        account = told.get("account").asText();
        measured = told.path("measured").asBoolean(true);
    }

    /** Place of a column in Event.columns. */
    int column(String name) {
        return Arrays.asList(columns).indexOf(name);
    }

    /**
     * What Flink's timestamps count in this query. They are whole numbers, whatever they mean: microseconds, so that
     * windows and timers are exact. Only SQL insists on milliseconds.
     */
    long tickUs() {
        return sql == null ? 1 : 1000;
    }

    /** A length in microseconds as operators want it. */
    static Duration span(long us) {
        return Duration.ofMillis(us);
    }

    private static List<Map<String, Set<Object>>> frames(JsonNode told) {
        List<Map<String, Set<Object>>> found = new ArrayList<>();
        for (JsonNode frame : told) {
            Map<String, Set<Object>> columns = new HashMap<>();
            for (Map.Entry<String, JsonNode> column : frame.properties()) {
                Set<Object> values = new HashSet<>();
                column.getValue().forEach(value -> values.add(value.isTextual() ? value.asText() : (Object) value.asLong()));
                columns.put(column.getKey(), values);
            }
            found.add(columns);
        }
        return found;
    }

    private static String text(JsonNode told, String name) {
        return told.path(name).isTextual() ? told.get(name).asText() : null;
    }

    private static String[] texts(JsonNode told) {
        List<String> found = new ArrayList<>();
        told.forEach(one -> found.add(one.asText()));
        return found.toArray(new String[0]);
    }
}
