// A record processor in Java, with Jackson for the JSON: JSON records in, deltas out, one at a time.
//
// Get ready:  apt-get install openjdk-17-jdk-headless libjackson2-databind-java
//             mkdir lib && ln -s /usr/share/java/jackson-*.jar lib
// Build:      javac -cp "lib/*" Markers.java
// Run:        executableName = java -cp .:lib/* Markers
//             childProtocol = markers
//
// It takes the default markers: a message ends with a line end, an answer with NUL.

import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.*;
import java.util.List;

public class Markers {
    static final ObjectMapper JSON = new ObjectMapper()
        .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS, DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS);

    /** The delta that a record stands for; the end of a unit of work stays as it is. */
    static JsonNode delta(byte[] message) throws IOException {
        JsonNode record = JSON.readTree(message);
        boolean end = record.path("end").booleanValue();
        if (!record.has("uow") || (end ? !record.has("count") : !record.has("table") || !record.has("id")))
            throw new IOException("a record has uow, table and id, or uow, end and count");
        if (end) return record;
        ObjectNode delta = JSON.createObjectNode().put("op", "upsert");
        delta.set("uow", record.get("uow"));
        delta.set("table", record.get("table"));
        delta.putObject("key").set("id", record.get("id"));
        delta.set("row", ((ObjectNode) record).remove(List.of("uow", "table")));
        return delta;
    }

    static JsonNode answer(byte[] message) {
        try {
            return delta(message);
        } catch (IOException e) {
            return JSON.createObjectNode().put("bad", e.getMessage().split("\n")[0]);
        }
    }

    public static void main(String[] arguments) throws IOException {
        InputStream in = new BufferedInputStream(System.in);
        ByteArrayOutputStream message = new ByteArrayOutputStream();
        for (int b; (b = in.read()) >= 0; ) {
            if (b != '\n') {
                message.write(b);
                continue;
            }
            System.out.write(JSON.writeValueAsBytes(answer(message.toByteArray())));
            System.out.write('\n');
            System.out.write('\0');
            System.out.flush(); // the daemon waits for it
            message.reset();
        }
    }
}
