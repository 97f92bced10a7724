"""Reading one shard ahead of its child, by polling or by enhanced fan-out.

Begin with :mod:`~kainite.kinesis.read.shard_source`, the interface of both, then :mod:`~kainite.kinesis.read.polling`
(``poll_interval`` paces it) or :mod:`~kainite.kinesis.read.fan_out` (``pushed_events`` come from a
``subscription`` of the consumer of ``consumer_registration``; the rest of a ``closed_shard`` is polled). Both make
batches (``batcher``, ``record_batch``) in a task that queues them within bounds (``read_ahead``, ``prefetch``). The
child's line is made by the ``render`` that the caller gives.
"""
