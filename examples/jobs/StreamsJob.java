import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;

/**
 * An ordinary job of Kafka Streams: flights per carrier and hour, from one Kafka topic to another.
 *
 * <p>It takes each record's own time and key. `java -cp … StreamsJob.java BOOTSTRAP INPUT OUTPUT APPLICATION STATE GRACE
 * final` answers once a window has closed; with `updates` it answers each change, under the key of the window.
 */
public final class StreamsJob {
    /** Flights, and the sum of their numbers. */
    private record Total(long flights, long sum) {
        static final Serde<Total> SERDE =
                Serdes.serdeFrom(
                        (topic, one) -> ByteBuffer.allocate(16).putLong(one.flights).putLong(one.sum).array(),
                        (topic, bytes) -> new Total(ByteBuffer.wrap(bytes).getLong(), ByteBuffer.wrap(bytes).getLong(8)));
    }

    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) {
        String input = arguments[1], output = arguments[2];
        Duration grace = Duration.parse(arguments[5]);
        boolean isFinal = arguments[6].equals("final");

        StreamsBuilder builder = new StreamsBuilder();
        KTable<Windowed<String>, Total> hours =
                builder.stream(input, Consumed.with(Serdes.String(), Serdes.String()))
                        .mapValues(StreamsJob::flight)
                        .groupByKey(Grouped.with(Serdes.String(), Serdes.Long()))
                        .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofHours(1), grace))
                        .aggregate(
                                () -> new Total(0, 0),
                                (carrier, flight, all) -> new Total(all.flights + 1, all.sum + flight),
                                Materialized.with(Serdes.String(), Total.SERDE));
        if (isFinal) {
            hours = hours.suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()));
        }
        hours.toStream().map(StreamsJob::answer).to(output, Produced.with(Serdes.String(), Serdes.String()));

        KafkaStreams streams = new KafkaStreams(builder.build(), settings(arguments));
        streams.setUncaughtExceptionHandler(
                problem -> {
                    problem.printStackTrace();
                    Runtime.getRuntime().halt(1);
                    return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
                });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(2))));
        streams.start();
    }

    private static Properties settings(String[] arguments) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[3]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[4]);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 1);
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        // topics for its state take times that lie ahead of the clock, too
        settings.put(StreamsConfig.topicPrefix("message.timestamp.after.max.ms"), Long.MAX_VALUE);
        return settings;
    }

    private static long flight(String value) {
        try {
            JsonNode row = JSON.readTree(value);
            return row.get("flight").asLong();
        } catch (java.io.IOException problem) {
            throw new IllegalArgumentException(value, problem);
        }
    }

    private static KeyValue<String, String> answer(Windowed<String> key, Total total) {
        String hour = key.window().startTime().toString();
        String value = JSON.createObjectNode()
                .put("hour", hour)
                .put("carrier", key.key())
                .put("flights", total.flights)
                .put("total", total.sum)
                .toString();
        return KeyValue.pair(key.key() + "@" + hour, value);
    }
}
