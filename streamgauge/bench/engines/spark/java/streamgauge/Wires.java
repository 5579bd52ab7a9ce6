package streamgauge;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Idle connections of this JVM, kept between tasks. Those of an older attempt are closed when a new one begins. */
final class Wires {
    private record Key(Wire.Endpoint endpoint, String attempt) {}

    /** Something to say over a connection. */
    interface Call<T> {
        T on(Wire wire) throws IOException;
    }

    private static final Map<Key, Deque<Wire>> IDLE = new HashMap<>();
    private static final Map<Key, long[]> CLOCKS = new HashMap<>();

    private Wires() {}

    /** An idle connection, or a new one. */
    static Wire take(Wire.Endpoint endpoint, String attempt) throws IOException {
        List<Wire> old = new ArrayList<>();
        Wire held;
        synchronized (IDLE) {
            IDLE.entrySet().removeIf(entry -> {
                boolean past = !entry.getKey().attempt.equals(attempt); // a JVM has one trial at a time
                if (past) {
                    old.addAll(entry.getValue());
                }
                return past;
            });
            Deque<Wire> idle = IDLE.get(new Key(endpoint, attempt));
            held = idle == null ? null : idle.pollFirst();
        }
        old.forEach(Wire::close);
        return held == null ? new Wire(endpoint, attempt) : held;
    }

    static void give(Wire.Endpoint endpoint, String attempt, Wire wire) {
        synchronized (IDLE) {
            IDLE.computeIfAbsent(new Key(endpoint, attempt), none -> new ArrayDeque<>()).addFirst(wire);
        }
    }

    /** Makes a call, and once more over a fresh connection if the first turns out to be dead. */
    static <T> T onceMore(Wire.Endpoint endpoint, String attempt, Call<T> call) throws IOException {
        Wire wire = take(endpoint, attempt);
        try {
            T answer = call.on(wire);
            give(endpoint, attempt, wire);
            return answer;
        } catch (Wire.Refused refused) {
            give(endpoint, attempt, wire);
            throw refused;
        } catch (IOException broken) {
            wire.close();
        }
        Wire fresh = new Wire(endpoint, attempt);
        try {
            T answer = call.on(fresh);
            give(endpoint, attempt, fresh);
            return answer;
        } catch (IOException problem) {
            fresh.close();
            throw problem;
        }
    }

    /** The driver's clock minus ours and the error's bound, in ns, asked once per attempt; null if unreachable. */
    static long[] clock(Wire.Endpoint endpoint, String attempt) {
        Key key = new Key(endpoint, attempt);
        synchronized (CLOCKS) {
            CLOCKS.keySet().removeIf(other -> !other.attempt.equals(attempt));
            if (!CLOCKS.containsKey(key)) {
                try {
                    CLOCKS.put(key, onceMore(endpoint, attempt, Wire::clockOffset));
                } catch (IOException unreachable) {
                    return null;
                }
            }
            return CLOCKS.get(key);
        }
    }
}
