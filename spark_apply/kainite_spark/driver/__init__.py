"""The apply job's driver: one process that runs micro-batches and makes their outcomes durable.

Begin with ``job`` (the loop), then ``follower`` (reads the main log), ``outcomes`` (the job's own log
partition), ``runner`` and ``session`` (Spark), ``patience`` (waits for a store or target that is away).
Imports from outside: the log (store, folded state, mount), settings; pyspark only inside functions.
"""
