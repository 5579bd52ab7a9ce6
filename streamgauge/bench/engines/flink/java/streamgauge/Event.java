package streamgauge;

/** A row of the wire. The source fills the same object again and again: a query copies what it keeps. */
public final class Event {
    public long seq;
    public long eventTime; // ticks of the source
    public long timeUs; // the same time in microseconds, rounded down
    public long eventWall; // ns
    public long offeredWall; // ns
    public boolean sentinel;
    public Object[] columns; // Long, Double, String or null, in the order of Spec.columns
}
