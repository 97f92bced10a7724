"""Messages on their way to the stream: :mod:`~kainite.extract.output.sink` puts them;
:mod:`kainite.kinesis.write.spread` chooses the shard of each message and does no I/O.
"""
