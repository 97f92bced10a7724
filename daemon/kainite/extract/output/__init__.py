"""Messages on their way to the stream. Begin reading with :mod:`~kainite.extract.output.sink`, which puts them;
:mod:`~kainite.extract.output.spread` chooses the shard of each message and does no I/O.
"""
