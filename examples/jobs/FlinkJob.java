import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/**
 * An ordinary Flink SQL job: flights per carrier and hour, from one Kafka topic to another.
 *
 * <p>It knows nothing of Streamgauge. `java -cp … FlinkJob.java BOOTSTRAP INPUT OUTPUT GROUP` runs it in one process.
 */
public final class FlinkJob {
    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], input = arguments[1], output = arguments[2], group = arguments[3];
        Configuration settings = new Configuration();
        settings.setString("execution.checkpointing.interval", "500ms");
        settings.setString("parallelism.default", "1");
        settings.setString("table.local-time-zone", "UTC");
        TableEnvironment flink =
                TableEnvironment.create(
                        EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());
        String kafka = "'connector' = 'kafka', 'properties.bootstrap.servers' = '" + bootstrap + "', 'format' = 'json', "
                + "'json.timestamp-format.standard' = 'ISO-8601'";
        flink.executeSql(
                "create table flights (event_ts timestamp_ltz(3), carrier string, flight bigint, "
                        + "watermark for event_ts as event_ts - interval '2' hour) with (" + kafka
                        + ", 'topic' = '" + input + "', 'properties.group.id' = '" + group
                        + "', 'scan.startup.mode' = 'earliest-offset')");
        flink.executeSql(
                "create table hours (`hour` timestamp(3), carrier string, flights bigint, total bigint) with (" + kafka
                        + ", 'topic' = '" + output + "')");
        flink.executeSql(
                        "insert into hours select window_start, carrier, count(*), sum(flight) "
                                + "from table(tumble(table flights, descriptor(event_ts), interval '1' hour)) "
                                + "group by window_start, window_end, carrier")
                .await();
    }
}
