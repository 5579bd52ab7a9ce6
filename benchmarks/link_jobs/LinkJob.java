import java.time.Instant;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/**
 * Flights per carrier and hour in Flink SQL, from a Kafka topic or from a socket of lines, to a Kafka topic.
 *
 * <p>The query is that of examples/jobs/FlinkJob.java; benchmarks/links.py compares its two sources. Arguments: kafka or
 * socket, BOOTSTRAP, INPUT (a topic, or host:port), OUTPUT, GROUP.
 */
public final class LinkJob {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        String source = arguments[0], bootstrap = arguments[1], input = arguments[2], output = arguments[3];
        Configuration settings = new Configuration();
        settings.setString("execution.checkpointing.interval", "500ms");
        settings.setString("parallelism.default", "1");
        settings.setString("table.local-time-zone", "UTC");
        StreamExecutionEnvironment streams = StreamExecutionEnvironment.getExecutionEnvironment(settings);
        StreamTableEnvironment flink = StreamTableEnvironment.create(streams);
        String kafka = "'connector' = 'kafka', 'properties.bootstrap.servers' = '" + bootstrap + "', 'format' = 'json', "
                + "'json.timestamp-format.standard' = 'ISO-8601'";
        if (source.equals("kafka")) {
            flink.executeSql(
                    "create table flights (event_ts timestamp_ltz(3), carrier string, flight bigint, "
                            + "watermark for event_ts as event_ts - interval '2' hour) with (" + kafka
                            + ", 'topic' = '" + input + "', 'properties.group.id' = '" + arguments[4]
                            + "', 'scan.startup.mode' = 'earliest-offset')");
        } else {
            String[] place = input.split(":");
            DataStream<Row> rows =
                    streams.socketTextStream(place[0], Integer.parseInt(place[1]))
                            .map(LinkJob::parsed)
                            .returns(Types.ROW_NAMED(
                                    new String[] {"event_ts", "carrier", "flight"},
                                    Types.INSTANT, Types.STRING, Types.LONG));
            Schema schema =
                    Schema.newBuilder()
                            .column("event_ts", DataTypes.TIMESTAMP_LTZ(3))
                            .column("carrier", DataTypes.STRING())
                            .column("flight", DataTypes.BIGINT())
                            .watermark("event_ts", "event_ts - interval '2' hour")
                            .build();
            flink.createTemporaryView("flights", rows, schema);
        }
        flink.executeSql(
                "create table hours (`hour` timestamp(3), carrier string, flights bigint, total bigint) with (" + kafka
                        + ", 'topic' = '" + output + "')");
        flink.executeSql(
                        "insert into hours select window_start, carrier, count(*), sum(flight) "
                                + "from table(tumble(table flights, descriptor(event_ts), interval '1' hour)) "
                                + "group by window_start, window_end, carrier")
                .await();
    }

    private static Row parsed(String line) throws Exception {
        JsonNode flight = JSON.readTree(line);
        JsonNode carrier = flight.get("carrier"), number = flight.get("flight");
        return Row.of(
                Instant.parse(flight.get("event_ts").asText()),
                carrier == null || carrier.isNull() ? null : carrier.asText(),
                number == null || number.isNull() ? null : number.asLong());
    }
}
