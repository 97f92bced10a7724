"""Putting records on a stream: :mod:`~kainite.kinesis.write.put` packs them into PutRecords calls and retries."""
