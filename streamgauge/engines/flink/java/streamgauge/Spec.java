package streamgauge;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/** What a trial runs: the query with its parameters, the columns that it needs, where it reads and writes. */
public final class Spec implements Serializable {
    private static final long serialVersionUID = 1;
    final String attempt;
    final String query;
    final String key;
    final String value;
    final String keyType;
    final long windowUs;
    final long slideUs;
    final long watermarkMs;
    final String[] columns; // that the query reads, besides those of the wire
    final String[] types; // string, int64 or float64, for each of them
    final String[] results; // names of the answer's columns
    final long[] salts; // for each of them, its salt of the checksum
    final Wire.Endpoint[] endpoints;
    final String account; // the folder for the logs of watermarks
    final boolean measured; // false: the answer goes nowhere, to see what measuring costs

    Spec(JsonNode told) {
        attempt = told.get("attempt").asText();
        query = told.get("query").asText();
        key = text(told, "key");
        value = text(told, "value");
        windowUs = told.get("window_us").asLong();
        slideUs = told.get("slide_us").asLong();
        watermarkMs = told.get("watermark_ms").asLong();
        columns = texts(told.get("columns"));
        types = texts(told.get("types"));
        keyType = key == null ? "string" : types[Arrays.asList(columns).indexOf(key)];
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

    private static String text(JsonNode told, String name) {
        return told.path(name).isTextual() ? told.get(name).asText() : null;
    }

    private static String[] texts(JsonNode told) {
        List<String> found = new ArrayList<>();
        told.forEach(one -> found.add(one.asText()));
        return found.toArray(new String[0]);
    }
}
