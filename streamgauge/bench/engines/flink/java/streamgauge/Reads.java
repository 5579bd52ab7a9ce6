package streamgauge;

import java.util.Map;
import java.util.Set;
import org.apache.flink.api.common.functions.FilterFunction;

/** Keeps the events that at least one frame of the query reads; a sentinel is of no kind, so none reads it. */
final class Reads implements FilterFunction<Event> {
    private static final long serialVersionUID = 1;
    private final Spec spec;

    Reads(Spec spec) {
        this.spec = spec;
    }

    @Override
    public boolean filter(Event event) {
        for (Map<String, Set<Object>> frame : spec.reads) {
            boolean all = true;
            for (Map.Entry<String, Set<Object>> column : frame.entrySet()) {
                all &= column.getValue().contains(event.columns[spec.column(column.getKey())]);
            }
            if (all) {
                return true;
            }
        }
        return false;
    }
}
