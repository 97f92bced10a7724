"""What the worker measures, and where it goes.

======================================  ======================================================
:mod:`~kainite.metrics.metric`          every metric: KCL's name and Prometheus', unit, level
:mod:`~kainite.metrics.meter`           hands each observation to the sinks
:mod:`~kainite.metrics.publishing`      starts what the settings ask for: one context manager
:mod:`~kainite.metrics.prometheus`      a sink that is scraped
:mod:`~kainite.metrics.cloudwatch`      a sink that sends sums as KCL does
:mod:`~kainite.metrics.statistics`      those sums, their levels and dimensions
======================================  ======================================================
"""
