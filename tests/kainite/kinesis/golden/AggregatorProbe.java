import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.Collections;
import software.amazon.kinesis.retrieval.AggregatorUtil;
import software.amazon.kinesis.retrieval.KinesisClientRecord;

/** Reads "base64 startingHashKey endingHashKey" lines; prints what KCL makes of each record: see README.md. */
public class AggregatorProbe {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = input.readLine()) != null; ) {
            String[] words = line.split(" ");
            KinesisClientRecord record = KinesisClientRecord.builder()
                    .data(ByteBuffer.wrap(Base64.getDecoder().decode(words[0])))
                    .partitionKey("outer").sequenceNumber("7").build();
            System.out.println(userRecords(record, words[1], words[2]));
        }
    }

    private static String userRecords(KinesisClientRecord record, String start, String end) throws Exception {
        StringBuilder out = new StringBuilder();
        try {
            for (KinesisClientRecord user
                    : new AggregatorUtil().deaggregate(Collections.singletonList(record), start, end)) {
                byte[] data = new byte[user.data().remaining()];
                user.data().get(data);
                out.append(user.subSequenceNumber()).append(',')
                        .append(Base64.getEncoder().encodeToString(user.partitionKey().getBytes("UTF-8"))).append(',')
                        .append(Base64.getEncoder().encodeToString(data)).append(' ');
            }
        } catch (LinkageError error) { // it wants to log the record, with a class that Java 11 took away
            return "thrown";
        }
        return out.toString().trim();
    }
}
