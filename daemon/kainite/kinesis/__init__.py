"""Reading a Kinesis stream: shards and their lineage, and one reader a shard."""
