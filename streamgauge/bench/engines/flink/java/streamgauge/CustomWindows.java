package streamgauge;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.windowing.assigners.WindowAssigner;
import org.apache.flink.streaming.api.windowing.triggers.EventTimeTrigger;
import org.apache.flink.streaming.api.windowing.triggers.Trigger;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/** Health monitoring: events and failures per key; an event is in its window, a failure also in the next three. */
final class CustomWindows extends Grouped<CustomWindows.Count> implements Job.Query {
    private static final long serialVersionUID = 1;

    /** State of a window. */
    public static final class Count extends Grouped.Acc {
        public long events;
        public long failures;
    }

    @Override
    public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
        return over(events, spec, new Windows(spec.windowUs, spec.offsetUs), Count.class, late);
    }

    @Override
    public Count createAccumulator() {
        return new Count();
    }

    @Override
    public Count add(Taken row, Count count) {
        count.join(row.eventWall, row.offeredWall);
        count.events++;
        count.failures += row.marked ? 1 : 0;
        return count;
    }

    @Override
    public Count merge(Count one, Count other) {
        throw new UnsupportedOperationException("these windows do not merge");
    }

    @Override
    void emit(Count count, Object key, long start, long end, Collector<Result> out) {
        out.collect(new Result(count.eventWall, count.offeredWall, start, end, key, count.events, count.failures));
    }

    private static final class Windows extends WindowAssigner<Object, TimeWindow> {
        private static final long serialVersionUID = 1;
        private static final int MARKED_SPANS = 4;
        private final long size;
        private final long offset;

        Windows(long size, long offset) {
            this.size = size;
            this.offset = offset;
        }

        @Override
        public Collection<TimeWindow> assignWindows(Object element, long time, WindowAssignerContext context) {
            long start = TimeWindow.getWindowStartWithOffset(time, offset, size);
            List<TimeWindow> found = new ArrayList<>();
            for (int i = 0; i < (((Taken) element).marked ? MARKED_SPANS : 1); i++) {
                found.add(new TimeWindow(start + i * size, start + (i + 1) * size));
            }
            return found;
        }

        @Override
        public Trigger<Object, TimeWindow> getDefaultTrigger() {
            return EventTimeTrigger.create();
        }

        @Override
        public TypeSerializer<TimeWindow> getWindowSerializer(ExecutionConfig config) {
            return new TimeWindow.Serializer();
        }

        @Override
        public boolean isEventTime() {
            return true;
        }
    }
}
