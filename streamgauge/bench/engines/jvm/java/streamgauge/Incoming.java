package streamgauge;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;

/** What a driver sends: lines through a small buffer, bodies of messages straight into Arrow's memory. */
final class Incoming implements ReadableByteChannel {
    private final ReadableByteChannel channel;
    private final ByteBuffer ahead = ByteBuffer.allocateDirect(1 << 16).limit(0);

    Incoming(ReadableByteChannel channel) {
        this.channel = channel;
    }

    @Override
    public int read(ByteBuffer into) throws IOException {
        if (!ahead.hasRemaining()) {
            if (into.remaining() >= ahead.capacity()) {
                return channel.read(into);
            }
            if (!fill()) {
                return -1;
            }
        }
        int count = Math.min(into.remaining(), ahead.remaining());
        into.put(ahead.slice().limit(count));
        ahead.position(ahead.position() + count);
        return count;
    }

    /** The bytes before the next newline. Throws EOFException if the connection ends there. */
    byte[] line() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(256);
        while (true) {
            if (!ahead.hasRemaining() && !fill()) {
                throw new EOFException("the connection was closed");
            }
            byte next = ahead.get();
            if (next == '\n') {
                return bytes.toByteArray();
            }
            bytes.write(next);
        }
    }

    private boolean fill() throws IOException {
        ahead.clear();
        int count = channel.read(ahead);
        ahead.flip();
        return count >= 0;
    }

    @Override
    public boolean isOpen() {
        return channel.isOpen();
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
