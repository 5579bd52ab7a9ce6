package streamgauge;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Options of source and sink, as streamgauge/bench/engines/spark/connections.py makes them. */
final class Options implements Serializable {
    private static final long serialVersionUID = 1;
    final Wire.Endpoint[] endpoints;
    final String attempt;
    final long batchRows; // most rows of a micro-batch; 0: no limit
    final String role; // alone; where a query reads the stream more than once, lead for one reader, follow for others
    final boolean realTime;
    final Map<String, Long> salts = new HashMap<>(); // by name of a result's column, its salt of the checksum

    Options(CaseInsensitiveStringMap given) {
        List<Wire.Endpoint> found = new ArrayList<>();
        int patienceMs = (int) (1000 * given.getDouble("patience_s", Wire.Endpoint.PATIENCE_S));
        for (String address : given.get("endpoints").split(",")) {
            int colon = address.lastIndexOf(':');
            String host = address.substring(0, colon).strip();
            int port = Integer.parseInt(address.substring(colon + 1));
            String token = given.getOrDefault("token", "");
            found.add(new Wire.Endpoint(host, port, 0, token, given.get("cafile"), patienceMs));
        }
        endpoints = found.toArray(new Wire.Endpoint[0]);
        attempt = given.getOrDefault("attempt", "");
        batchRows = given.getLong("batch_rows", 0);
        role = given.getOrDefault("role", "alone");
        realTime = given.getBoolean("real_time", false);
        for (String salt : given.getOrDefault("salts", "").split(",")) {
            int equals = salt.lastIndexOf('=');
            if (equals > 0) {
                salts.put(salt.substring(0, equals), Long.parseUnsignedLong(salt.substring(equals + 1)));
            }
        }
    }
}
