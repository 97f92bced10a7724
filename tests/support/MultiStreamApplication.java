import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import software.amazon.awssdk.http.Protocol;
import software.amazon.awssdk.http.nio.netty.NettyNioAsyncHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.cloudwatch.CloudWatchAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.kinesis.KinesisAsyncClient;
import software.amazon.kinesis.common.ConfigsBuilder;
import software.amazon.kinesis.common.InitialPositionInStream;
import software.amazon.kinesis.common.InitialPositionInStreamExtended;
import software.amazon.kinesis.common.StreamConfig;
import software.amazon.kinesis.common.StreamIdentifier;
import software.amazon.kinesis.coordinator.CoordinatorConfig.ClientVersionConfig;
import software.amazon.kinesis.coordinator.Scheduler;
import software.amazon.kinesis.lifecycle.events.InitializationInput;
import software.amazon.kinesis.lifecycle.events.LeaseLostInput;
import software.amazon.kinesis.lifecycle.events.ProcessRecordsInput;
import software.amazon.kinesis.lifecycle.events.ShardEndedInput;
import software.amazon.kinesis.lifecycle.events.ShutdownRequestedInput;
import software.amazon.kinesis.metrics.MetricsLevel;
import software.amazon.kinesis.processor.FormerStreamsLeasesDeletionStrategy;
import software.amazon.kinesis.processor.FormerStreamsLeasesDeletionStrategy.NoLeaseDeletionStrategy;
import software.amazon.kinesis.processor.MultiStreamTracker;
import software.amazon.kinesis.processor.ShardRecordProcessor;
import software.amazon.kinesis.processor.ShardRecordProcessorFactory;
import software.amazon.kinesis.retrieval.KinesisClientRecord;
import software.amazon.kinesis.retrieval.polling.PollingConfig;

/**
 * A multi-stream application on the real KCL: APPLICATION WORKER KINESIS DYNAMODB JOURNAL STREAM_IDENTIFIER...
 *
 * Each record is a line of the journal: its lease key, its sequence number and its payload, with spaces between them.
 */
public final class MultiStreamApplication {
    public static void main(String[] arguments) {
        String application = arguments[0], worker = arguments[1];
        URI kinesisEndpoint = URI.create(arguments[2]), dynamoEndpoint = URI.create(arguments[3]);
        Path journal = Path.of(arguments[4]);
        List<StreamConfig> streams = new ArrayList<>();
        for (String stream : Arrays.copyOfRange(arguments, 5, arguments.length)) {
            streams.add(new StreamConfig(
                    StreamIdentifier.multiStreamInstance(stream),
                    InitialPositionInStreamExtended.newInitialPosition(InitialPositionInStream.TRIM_HORIZON)));
        }
        KinesisAsyncClient kinesis = KinesisAsyncClient.builder()
                .region(Region.US_EAST_1)
                .endpointOverride(kinesisEndpoint)
                .httpClientBuilder(NettyNioAsyncHttpClient.builder().protocol(Protocol.HTTP1_1))
                .build();
        DynamoDbAsyncClient dynamo =
                DynamoDbAsyncClient.builder().region(Region.US_EAST_1).endpointOverride(dynamoEndpoint).build();
        CloudWatchAsyncClient cloudWatch =
                CloudWatchAsyncClient.builder().region(Region.US_EAST_1).endpointOverride(dynamoEndpoint).build();
        ConfigsBuilder configs = new ConfigsBuilder(
                new Tracker(streams), application, kinesis, dynamo, cloudWatch, worker, new Factory(journal));
        new Scheduler(
                        configs.checkpointConfig(),
                        configs.coordinatorConfig()
                                .parentShardPollIntervalMillis(500)
                                .clientVersionConfig(ClientVersionConfig.CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X),
                        configs.leaseManagementConfig().failoverTimeMillis(4000),
                        configs.lifecycleConfig(),
                        configs.metricsConfig().metricsLevel(MetricsLevel.NONE),
                        configs.processorConfig(),
                        configs.retrievalConfig()
                                .retrievalSpecificConfig(new PollingConfig(kinesis).idleTimeBetweenReadsInMillis(200)))
                .run();
    }

    private record Tracker(List<StreamConfig> streams) implements MultiStreamTracker {
        @Override
        public List<StreamConfig> streamConfigList() {
            return streams;
        }

        @Override
        public FormerStreamsLeasesDeletionStrategy formerStreamsLeasesDeletionStrategy() {
            return new NoLeaseDeletionStrategy();
        }
    }

    private record Factory(Path journal) implements ShardRecordProcessorFactory {
        @Override
        public ShardRecordProcessor shardRecordProcessor() {
            throw new UnsupportedOperationException("the stream is not said");
        }

        @Override
        public ShardRecordProcessor shardRecordProcessor(StreamIdentifier stream) {
            return new Processor(journal, stream.serialize());
        }
    }

    private static final class Processor implements ShardRecordProcessor {
        private final Path journal;
        private final String stream;
        private String shard;

        Processor(Path journal, String stream) {
            this.journal = journal;
            this.stream = stream;
        }

        @Override
        public void initialize(InitializationInput input) {
            shard = stream + ":" + input.shardId();
        }

        @Override
        public void processRecords(ProcessRecordsInput input) {
            try {
                StringBuilder lines = new StringBuilder();
                for (KinesisClientRecord record : input.records()) {
                    ByteBuffer data = record.data();
                    lines.append(shard).append(' ').append(record.sequenceNumber()).append(' ')
                            .append(StandardCharsets.UTF_8.decode(data)).append('\n');
                }
                Files.writeString(journal, lines, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                input.checkpointer().checkpoint();
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public void leaseLost(LeaseLostInput input) {}

        @Override
        public void shardEnded(ShardEndedInput input) {
            try {
                input.checkpointer().checkpoint();
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public void shutdownRequested(ShutdownRequestedInput input) {
            try {
                input.checkpointer().checkpoint();
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }
    }
}
