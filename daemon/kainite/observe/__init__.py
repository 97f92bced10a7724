"""Metrics and health: what the daemon tells those who watch it.

Begin with :mod:`~kainite.observe.metric`, the table of all metrics, and :mod:`~kainite.observe.meter`, which other
rooms call. :mod:`~kainite.observe.publishing` starts the sinks (``cloudwatch`` with ``statistics``, ``prometheus``) and
the HTTP endpoint; :mod:`~kainite.observe.health` judges the daemon and its shards (``shard_status``). Observe imports
aws, settings and base.
"""
