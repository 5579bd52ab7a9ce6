package streamgauge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.Serializable;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.channels.WritableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.Base64;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.ReadChannel;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.arrow.vector.types.pojo.Schema;

/** A connection to a driver, as docs/protocol.md describes it. One thread at a time may use it. */
final class Wire implements AutoCloseable {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final BufferAllocator MEMORY = new RootAllocator();
    private static final Pattern CERTIFICATE =
        Pattern.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", Pattern.DOTALL);

    /** A driver process; its queues are numbered 0 … partitions − 1. It may be away for so long. */
    record Endpoint(String host, int port, int partitions, String token, String cafile, int patienceMs)
        implements Serializable {
        static final double PATIENCE_S = 3;

        static Endpoint of(JsonNode told) {
            String cafile = told.path("cafile").isTextual() ? told.get("cafile").asText() : null;
            return new Endpoint(told.get("host").asText(), told.get("port").asInt(), told.get("partitions").asInt(),
                told.path("token").asText(""), cafile, (int) (1000 * told.path("patience_s").asDouble(PATIENCE_S)));
        }
    }

    /** A driver that refused a request: to ask again would not help. */
    static final class Refused extends IOException {
        private static final long serialVersionUID = 1;

        Refused(String message) {
            super(message);
        }
    }

    private final Socket socket;
    private final Incoming in;
    private final WritableByteChannel out;
    private final String address;
    private final JsonNode hello;

    /** Connects and says hello; tries as long as the driver may be away. */
    Wire(Endpoint endpoint, String attempt) throws IOException {
        address = endpoint.host() + ":" + endpoint.port();
        socket = connected(endpoint);
        socket.setTcpNoDelay(true);
        SocketChannel channel = socket.getChannel(); // null with TLS
        in = new Incoming(channel == null ? Channels.newChannel(socket.getInputStream()) : channel);
        out = channel == null ? Channels.newChannel(socket.getOutputStream()) : channel;
        try {
            hello = ask(JSON.createObjectNode().put("verb", "hello").put("version", 1).put("token", endpoint.token())
                .put("attempt", attempt));
        } catch (IOException problem) {
            close();
            throw problem;
        }
    }

    private static Socket connected(Endpoint endpoint) throws IOException {
        InetSocketAddress address = new InetSocketAddress(endpoint.host(), endpoint.port());
        long deadline = System.nanoTime() + endpoint.patienceMs() * 1_000_000L;
        while (true) {
            Socket socket = null;
            try {
                // a channel reads into Arrow's memory without a copy
                socket = endpoint.cafile() == null ? SocketChannel.open().socket()
                    : trusting(endpoint.cafile());
                socket.connect(address, endpoint.patienceMs());
                return socket;
            } catch (IOException problem) {
                if (socket != null) {
                    socket.close();
                }
                if (System.nanoTime() > deadline) {
                    String where = "driver " + endpoint.host() + ":" + endpoint.port();
                    throw new IOException(where + ": " + problem.getMessage(), problem);
                }
                try {
                    Thread.sleep(100);
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                    throw new IOException("interrupted", interrupted);
                }
            }
        }
    }

    /** A socket that trusts the certificates in a PEM file, whatever else that holds, if they name its host. */
    private static SSLSocket trusting(String cafile) throws IOException {
        try {
            KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            CertificateFactory factory = CertificateFactory.getInstance("X.509");
            Matcher pem = CERTIFICATE.matcher(Files.readString(Path.of(cafile), StandardCharsets.ISO_8859_1));
            for (int number = 0; pem.find(); number++) {
                byte[] one = pem.group().getBytes(StandardCharsets.ISO_8859_1);
                store.setCertificateEntry("driver " + number, factory.generateCertificate(new ByteArrayInputStream(one)));
            }
            TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(store);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, trust.getTrustManagers(), null);
            SSLSocket made = (SSLSocket) context.getSocketFactory().createSocket();
            SSLParameters parameters = made.getSSLParameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS"); // by itself, Java checks no host
            made.setSSLParameters(parameters);
            return made;
        } catch (java.security.GeneralSecurityException problem) {
            throw new IOException(cafile + ": " + problem.getMessage(), problem);
        }
    }

    /** Sends a request and returns the answer. Throws Refused with the driver's own line. */
    JsonNode ask(ObjectNode request) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap((JSON.writeValueAsString(request) + "\n").getBytes(StandardCharsets.UTF_8));
        while (bytes.hasRemaining()) {
            out.write(bytes);
        }
        JsonNode answer = line();
        if (!answer.path("ok").asBoolean()) {
            throw new Refused("driver " + address + ": " + answer.path("error").asText());
        }
        return answer;
    }

    /** `commit` or `planned`: the first row of each partition that is not meant. */
    void offsets(String verb, Map<Integer, Long> rows) throws IOException {
        ObjectNode request = JSON.createObjectNode().put("verb", verb);
        ObjectNode offsets = request.putObject("offsets");
        rows.forEach((partition, row) -> offsets.put(partition.toString(), row));
        ask(request);
    }

    void report(String attempt, long epoch, JsonNode body) throws IOException {
        ObjectNode request = JSON.createObjectNode().put("verb", "report").put("attempt", attempt).put("epoch", epoch);
        request.set("body", body);
        ask(request);
    }

    /** The driver's clock minus ours, and the bound of its error, in ns: the quickest of some round trips. */
    long[] clockOffset() throws IOException {
        long[] best = {0, Long.MAX_VALUE};
        for (int i = 0; i < 8; i++) {
            long begin = Clock.now();
            long there = ask(JSON.createObjectNode().put("verb", "latest")).get("wall_ns").asLong();
            long end = Clock.now();
            if ((end - begin) / 2 < best[1]) {
                best = new long[] {there - (begin + end) / 2, (end - begin) / 2};
            }
        }
        return best;
    }

    /** Number of the driver's queues. */
    int partitions() {
        return hello.get("partitions").asInt();
    }

    /** Schema of the rows. */
    Schema schema() throws IOException {
        byte[] message = Base64.getDecoder().decode(hello.get("schema").asText());
        ReadChannel channel = new ReadChannel(Channels.newChannel(new ByteArrayInputStream(message)));
        return MessageSerializer.deserializeSchema(channel);
    }

    /** Reads from a row on, at most maxRows; waits for the first one. */
    Answer read(int partition, long from, int maxRows, int waitMs) throws IOException {
        ask(reading(partition, from).put("max_rows", maxRows).put("wait_ms", waitMs));
        return new Answer();
    }

    /** Reads rows from … end − 1, which were offered; the answer may hold fewer. */
    Answer read(int partition, long from, long end) throws IOException {
        ask(reading(partition, from).put("to", end));
        return new Answer();
    }

    private static ObjectNode reading(int partition, long from) {
        return JSON.createObjectNode().put("verb", "read").put("partition", partition).put("from", from);
    }

    /** Record batches, one after the other in the same memory. Whoever leaves early must close the wire, too. */
    final class Answer implements AutoCloseable {
        private final ArrowStreamReader reader = new ArrowStreamReader(in, MEMORY);
        private long rows;

        VectorSchemaRoot root() throws IOException {
            return reader.getVectorSchemaRoot();
        }

        /** Loads the next batch; false after the last. Throws IOException if the answer stops in its middle. */
        boolean next() throws IOException {
            if (reader.loadNextBatch()) {
                rows += root().getRowCount();
                return true;
            }
            JsonNode end = line(); // a stream that just stops is no end of data
            if (!end.path("end").asBoolean() || end.path("rows").asLong(-1) != rows) {
                throw new IOException("driver " + address + ": an answer of " + rows + " rows ended with " + end);
            }
            return false;
        }

        @Override
        public void close() throws IOException {
            reader.close(false); // the connection stays open
        }
    }

    private JsonNode line() throws IOException {
        try {
            return JSON.readTree(in.line());
        } catch (EOFException closed) {
            throw new EOFException("driver " + address + " closed the connection");
        }
    }

    @Override
    public void close() {
        try {
            socket.close();
        } catch (IOException ignored) {
            // nobody waits for it any more
        }
    }
}
