package streamgauge;

/** A row of an answer: its values in the order of Query.columns, and the latest walls of its contributors. */
public final class Result {
    public Object[] values; // Long, Double, String, Boolean or null; timestamps as microseconds
    public long eventWall;
    public long offeredWall;
    public boolean sentinel;

    public Result() {}

    Result(long eventWall, long offeredWall, Object... values) {
        this.eventWall = eventWall;
        this.offeredWall = offeredWall;
        this.values = values;
    }
}
