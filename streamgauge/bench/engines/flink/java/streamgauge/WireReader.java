package streamgauge;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.core.io.InputStatus;

/**
 * Emits the rows of its queues, and a watermark after every 1000 of them.
 *
 * A thread for each queue fetches ahead. Another one tells the drivers, every 50 ms, what was emitted (`planned`), and
 * after a checkpoint what need not be kept (`commit`). After which row which watermark was emitted goes to the account,
 * once a checkpoint has made it final: with it anyone can tell which rows were rightly dropped as late.
 */
final class WireReader implements SourceReader<Event, Split> {
    private static final long NONE = Long.MIN_VALUE; // where Flink's own watermarks begin
    private static final int CHUNK_ROWS = 1_000;
    private static final int READ_ROWS = 20_000;
    private static final int WAIT_MS = 20;
    private static final int LINGER_MS = 5; // after an answer of few rows: asking for each costs more than it brings
    private static final int BATCHES_AHEAD = 4;
    private static final long PLANNED_EVERY_MS = 50;

    private record Fetched(Split split, Rows rows) {}

    private record Snapshot(long checkpoint, long marks, Map<Integer, Long> rows) {}

    private final Spec spec;
    private final int subtask;
    private final Map<Integer, Split> splits = new TreeMap<>(); // by queue
    private final LinkedBlockingQueue<Fetched> fetched = new LinkedBlockingQueue<>(BATCHES_AHEAD);
    private final List<Thread> fetchers = new ArrayList<>();
    private final Map<Integer, Long> received = new ConcurrentHashMap<>(); // by queue, the row after the last fetched
    private final ArrayDeque<Snapshot> snapshots = new ArrayDeque<>(); // oldest first
    private final List<Split.Mark> marks = new ArrayList<>();
    private final Event event = new Event();
    private final ScheduledExecutorService teller = Executors.newSingleThreadScheduledExecutor(WireReader::daemon);
    private final Map<Integer, Wire> tellers = new HashMap<>(); // by endpoint; used by the teller's thread alone
    private volatile Map<Integer, Long> emitted = Map.of(); // by queue
    private volatile CompletableFuture<Void> available = new CompletableFuture<>();
    private volatile IOException failure;
    private volatile boolean closed;
    private Fetched current;
    private int at; // within the current rows
    private long watermarkMs = NONE;
    private long markNumber;

    WireReader(Spec spec, int subtask) {
        this.spec = spec;
        this.subtask = subtask;
    }

    private static Thread daemon(Runnable work) {
        Thread thread = new Thread(work, "streamgauge-teller");
        thread.setDaemon(true);
        return thread;
    }

    @Override
    public void start() {
        teller.scheduleWithFixedDelay(this::tellPlanned, PLANNED_EVERY_MS, PLANNED_EVERY_MS, TimeUnit.MILLISECONDS);
    }

    @Override
    public void addSplits(List<Split> added) {
        for (Split split : added) {
            splits.put(split.queue, split);
            marks.addAll(split.marks);
            markNumber = Math.max(markNumber, split.marksBefore + split.marks.size());
            split.marks = List.of();
            Thread thread = new Thread(() -> fetch(split, split.row), "streamgauge-fetch-" + split.queue);
            thread.setDaemon(true);
            fetchers.add(thread);
            thread.start();
        }
        available.complete(null);
    }

    @Override
    public InputStatus pollNext(ReaderOutput<Event> output) throws Exception {
        if (failure != null) {
            throw failure;
        }
        if (current == null) {
            current = fetched.poll();
            at = 0;
            if (current == null) {
                return InputStatus.NOTHING_AVAILABLE;
            }
        }
        if (watermarkMs == NONE && watermark() != NONE) {
            // after a restart operators know no watermark: without one they would take what is late, and answer twice
            watermarkMs = watermark();
            output.emitWatermark(flinks(watermarkMs));
        }
        Split split = current.split;
        Rows rows = current.rows;
        int end = Math.min(at + CHUNK_ROWS, rows.count);
        for (; at < end; at++) {
            long timeMs = rows.fill(event, at);
            split.latestMs = Math.max(split.latestMs, timeMs);
            output.collect(event, spec.tickUs() == 1 ? event.timeUs : timeMs);
        }
        split.row = rows.first + at;
        if (at == rows.count) {
            current = null;
        }
        emitted = rows();
        tellWatermark(output);
        return current != null || !fetched.isEmpty() ? InputStatus.MORE_AVAILABLE : InputStatus.NOTHING_AVAILABLE;
    }

    /** The least of all queues' largest event times, less the delay; it never goes back. */
    private void tellWatermark(ReaderOutput<Event> output) {
        long told = watermark();
        if (told > watermarkMs) {
            watermarkMs = told;
            output.emitWatermark(flinks(told));
            marks.add(new Split.Mark(markNumber++, emitted, told));
        }
    }

    /** The watermark in Flink's words, where no event at or below it will come: a window [a, b) ends at b - 1. */
    private Watermark flinks(long told) {
        return new Watermark(told * 1000 / spec.tickUs() - 1);
    }

    /** NONE as long as a queue has brought no row. */
    private long watermark() {
        long least = Long.MAX_VALUE;
        for (Split one : splits.values()) {
            least = Math.min(least, one.latestMs);
        }
        return least == Long.MIN_VALUE ? NONE : least - spec.watermarkMs;
    }

    private Map<Integer, Long> rows() {
        Map<Integer, Long> found = new HashMap<>();
        splits.forEach((queue, split) -> found.put(queue, split.row));
        return found;
    }

    @Override
    public CompletableFuture<Void> isAvailable() {
        if (current != null || !fetched.isEmpty() || failure != null) {
            return CompletableFuture.completedFuture(null);
        }
        if (available.isDone()) { // asked twice, it is the same future: somebody may wait for the first
            available = new CompletableFuture<>();
            if (!fetched.isEmpty() || failure != null) { // it came meanwhile
                available.complete(null);
            }
        }
        return available;
    }

    @Override
    public List<Split> snapshotState(long checkpoint) {
        List<Split> kept = new ArrayList<>();
        splits.forEach((queue, split) -> {
            Split copy = new Split(split.endpoint, split.partition, queue);
            copy.row = split.row;
            copy.latestMs = split.latestMs;
            copy.marks = kept.isEmpty() ? List.copyOf(marks) : List.of();
            copy.marksBefore = markNumber - copy.marks.size();
            kept.add(copy);
        });
        snapshots.add(new Snapshot(checkpoint, markNumber, rows()));
        return kept;
    }

    @Override
    public void notifyCheckpointComplete(long checkpoint) throws Exception {
        Snapshot last = null;
        while (!snapshots.isEmpty() && snapshots.peek().checkpoint <= checkpoint) {
            last = snapshots.remove();
        }
        if (last != null) {
            account(last.marks);
            Map<Integer, Long> rows = last.rows;
            teller.execute(() -> tell("commit", rows));
        }
    }

    /** Appends the marks below this number. After a restart some may stand there twice, and are equal. */
    private void account(long end) throws IOException {
        StringBuilder lines = new StringBuilder("\n"); // ends a line that a crash has torn
        for (Split.Mark mark : marks) {
            if (mark.number() < end) {
                lines.append(Wire.JSON.writeValueAsString(mark)).append('\n');
            }
        }
        marks.removeIf(mark -> mark.number() < end);
        if (lines.length() > 1) {
            Path file = Path.of(spec.account, "watermarks-" + subtask + ".jsonl");
            Files.writeString(file, lines, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        }
    }

    private void tellPlanned() {
        tell("planned", emitted);
    }

    /** Tells each driver how far its queues are; what is lost on the way is told again, 50 ms later. */
    private void tell(String verb, Map<Integer, Long> rows) {
        Map<Integer, Map<Integer, Long>> byEndpoint = new HashMap<>();
        rows.forEach((queue, row) -> {
            Split split = splits.get(queue);
            byEndpoint.computeIfAbsent(split.endpoint, none -> new HashMap<>()).put(split.partition, row);
        });
        byEndpoint.forEach((endpoint, offsets) -> {
            try {
                if (!tellers.containsKey(endpoint)) {
                    tellers.put(endpoint, new Wire(spec.endpoints[endpoint], spec.attempt));
                }
                tellers.get(endpoint).offsets(verb, offsets);
            } catch (IOException problem) {
                Wire broken = tellers.remove(endpoint);
                if (broken != null) {
                    broken.close();
                }
                if (verb.equals("commit") && !closed && !(problem instanceof Wire.Refused)) {
                    teller.execute(() -> tell(verb, rows));
                }
            }
        });
    }

    private void fetch(Split split, long from) {
        long next = from;
        Wire wire = null;
        boolean again = false;
        while (!closed) {
            try {
                if (wire == null) {
                    wire = new Wire(spec.endpoints[split.endpoint], spec.attempt);
                }
                long position = next;
                try (Wire.Answer answer = wire.read(split.partition, next, READ_ROWS, WAIT_MS)) {
                    while (answer.next()) {
                        if (answer.root().getRowCount() > 0) {
                            put(new Fetched(split, new Rows(answer.root(), spec, position)));
                            position += answer.root().getRowCount();
                        }
                    }
                }
                if (position - next < CHUNK_ROWS) {
                    Thread.sleep(LINGER_MS);
                }
                next = position;
                again = false;
            } catch (IOException problem) {
                if (wire != null) {
                    wire.close();
                    wire = null;
                }
                if (again || problem instanceof Wire.Refused) {
                    fail(problem);
                    return;
                }
                again = true; // a connection that breaks is made anew, once; whole batches that it brought are rows
                next = Math.max(next, received.getOrDefault(split.queue, next));
            } catch (InterruptedException closing) {
                closed = true;
            } catch (RuntimeException | Error problem) { // whatever it is, the job must know
                fail(new IOException(problem));
                break;
            }
        }
        if (wire != null) {
            wire.close();
        }
    }

    private void put(Fetched rows) {
        try {
            fetched.put(rows);
        } catch (InterruptedException closing) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted");
        }
        received.put(rows.split.queue, rows.rows.first + rows.rows.count);
        available.complete(null);
    }

    private void fail(IOException problem) {
        if (!closed) {
            failure = problem;
            available.complete(null);
        }
    }

    @Override
    public void notifyNoMoreSplits() {}

    @Override
    public void close() {
        closed = true;
        fetchers.forEach(Thread::interrupt);
        teller.shutdownNow();
        try {
            if (teller.awaitTermination(1, TimeUnit.SECONDS)) { // until then, the wires are that thread's
                tellers.values().forEach(Wire::close);
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
