import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkGeneratorSupplier;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.util.clock.RelativeClock;
import org.apache.flink.util.clock.SystemClock;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;

/** Prints the milliseconds that the engines themselves read in a job's lines, which the test puts in. */
class Lines {
    record Event(long at) {}

    static final WatermarkGeneratorSupplier.Context CONTEXT = new WatermarkGeneratorSupplier.Context() {
        public MetricGroup getMetricGroup() { return null; }
        public RelativeClock getInputActivityClock() { return SystemClock.getInstance(); }
    };

    static long delay(WatermarkStrategy<Event> strategy) {
        WatermarkGenerator<Event> generator = strategy.createWatermarkGenerator(CONTEXT);
        long[] seen = {0};
        WatermarkOutput output = new WatermarkOutput() {
            public void emitWatermark(Watermark watermark) { seen[0] = watermark.getTimestamp(); }
            public void markIdle() {}
            public void markActive() {}
        };
        generator.onEvent(new Event(0), 1_000_000_000_000_000L, output);
        generator.onPeriodicEmit(output);
        return 1_000_000_000_000_000L - 1 - seen[0];
    }

    static String of(TimeWindows windows) {
        return windows.size() + " " + windows.advanceMs + " " + windows.gracePeriodMs();
    }

    static String of(SessionWindows windows) {
        return windows.inactivityGap() + " " + windows.gracePeriodMs();
    }

    static String of(JoinWindows windows) {
        return windows.beforeMs + " " + windows.afterMs + " " + windows.gracePeriodMs();
    }

    static String sql(String watermark) {
        TableEnvironment table = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
        table.executeSql("CREATE TABLE events (ts TIMESTAMP(3), " + watermark + ") WITH ('connector' = 'datagen')");
        Matcher interval = Pattern.compile("-\\(ts, (\\d+):INTERVAL").matcher(table.explainSql("SELECT * FROM events"));
        return interval.find() ? interval.group(1) : "none";
    }

    public static void main(String[] none) {
        //LINES
    }
}
