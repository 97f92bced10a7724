"""What the worker measures, and where it goes.

======================================  ======================================================
:mod:`~kainite.metrics.metric`          every metric: KCL's name, operation, unit and level
:mod:`~kainite.metrics.meter`           hands each observation to the sinks
======================================  ======================================================
"""
