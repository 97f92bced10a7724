"""Putting records on a stream. :mod:`~kainite.kinesis.write.put` packs them into PutRecords calls and retries;
:mod:`~kainite.kinesis.write.aggregating` packs several messages into one record;
:mod:`~kainite.kinesis.write.spread` chooses the shard of each message and does no I/O, and
:mod:`~kainite.kinesis.write.open_shards` keeps it up to date.
"""
