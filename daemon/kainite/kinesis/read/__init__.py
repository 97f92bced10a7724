"""Reading one shard ahead of its child, by polling or by enhanced fan-out.

Begin with :mod:`~kainite.kinesis.read.shard_source`, the interface of both, then :mod:`~kainite.kinesis.read.polling`
(``poll_interval`` paces it) or :mod:`~kainite.kinesis.read.fan_out` (``subscription`` has the event stream,
``consumer_registration`` the registered consumer). Both make batches (``batcher``, ``record_batch``) in a
task that queues them within bounds (``read_ahead``, ``prefetch``); fan-out polls the rest of a ``closed_shard``. The
child's line is made by the ``render`` that the caller gives.
"""
