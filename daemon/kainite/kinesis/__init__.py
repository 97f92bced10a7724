"""A Kinesis stream: its shards, reading them in order (``read``), and putting records on it (``write``).

Begin with :mod:`~kainite.kinesis.client`, the calls to one stream, and :mod:`~kainite.kinesis.shards`, shards and their
lineage. :mod:`~kainite.kinesis.start_position` says where an iterator starts, :mod:`~kainite.kinesis.aggregation` takes
KPL aggregates apart, :mod:`~kainite.kinesis.kpl_message` has their format. Kinesis knows neither leases nor children.
It imports observe, aws, settings and base.
"""
