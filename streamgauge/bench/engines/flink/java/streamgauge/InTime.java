package streamgauge;

import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * Leaves out the events of which the watermark said that they would not come, and counts them. What follows may then
 * forget, when the watermark passes it, whatever such an event would need.
 */
final class InTime extends ProcessFunction<Event, Event> {
    private static final long serialVersionUID = 1;
    private static final OutputTag<Event> LATE = new OutputTag<>("late", TypeInformation.of(Event.class));

    static DataStream<Event> of(DataStream<Event> events, Job.LateRows late) {
        SingleOutputStreamOperator<Event> found = events.process(new InTime());
        late.count(found.getSideOutput(LATE));
        return found;
    }

    @Override
    public void processElement(Event event, Context context, Collector<Event> out) {
        if (!event.sentinel && context.timestamp() <= context.timerService().currentWatermark()) {
            context.output(LATE, event);
        } else {
            out.collect(event);
        }
    }
}
