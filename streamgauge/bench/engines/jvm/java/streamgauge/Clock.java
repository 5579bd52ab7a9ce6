package streamgauge;

/** Wall-clock nanoseconds at the price of a monotonic clock: the difference of both is looked up every 10 ms. */
final class Clock {
    private static final long STEP_NS = 10_000_000;
    private static volatile long offset;
    private static volatile long until = Long.MIN_VALUE;

    private Clock() {}

    static long now() {
        long tick = System.nanoTime();
        if (until == Long.MIN_VALUE || tick - until > 0) {
            java.time.Instant wall = java.time.Instant.now();
            offset = wall.getEpochSecond() * 1_000_000_000L + wall.getNano() - tick;
            until = tick + STEP_NS;
        }
        return tick + offset;
    }
}
