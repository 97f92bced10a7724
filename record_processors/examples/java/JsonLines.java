// A record processor in Java, with Jackson for the JSON: JSON records in, deltas out.
//
// Get ready:  apt-get install openjdk-17-jdk-headless libjackson2-databind-java
//             mkdir lib && ln -s /usr/share/java/jackson-*.jar lib
// Build:      javac -cp "lib/*" JsonLines.java
// Run:        executableName = java -cp .:lib/* JsonLines
// Nothing but messages may go to standard output: System.err.println(), not System.out.println().

import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.*;
import java.util.List;

public class JsonLines {
    static final ObjectMapper JSON = new ObjectMapper()
        .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS, DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS);

    /** The delta that a record stands for; the end of a unit of work stays as it is. */
    static JsonNode delta(byte[] data) throws IOException {
        JsonNode record = JSON.readTree(data);
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

    static void say(String action, String name, JsonNode value) throws IOException {
        System.out.write((JSON.createObjectNode().put("action", action).set(name, value) + "\n").getBytes("UTF-8"));
        System.out.flush(); // the daemon waits for it
    }

    static void emit(JsonNode record) throws IOException {
        try {
            say("emit", "deltas", JSON.createArrayNode().add(delta(record.get("data").binaryValue())));
        } catch (IOException e) {
            String number = record.get("sequenceNumber").asText();
            System.err.println("bad record " + number + ": " + e.getMessage().split("\n")[0]);
        }
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode request = JSON.readTree(line), action = request.get("action");
            for (JsonNode record : request.path("records")) emit(record);
            if (!List.of("initialize", "leaseLost").contains(action.asText())) { // there is no checkpoint in these
                say("checkpoint", "sequenceNumber", JSON.nullNode());
                JsonNode refused = JSON.readTree(in.readLine()).get("error");
                if (!refused.isNull()) System.err.println("no checkpoint: " + refused); // the next one will say as much
            }
            say("status", "responseFor", action);
        }
    }
}
