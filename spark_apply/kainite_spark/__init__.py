"""The apply job on PySpark: takes units of work out of the serialization log and applies them to a target.

Begin with ``driver.job``: one round polls the log, selects units (``plan``), runs a micro-batch of
tasks (``executor``) and appends outcomes; tasks apply units to a target (``targets``).
``data_source`` shows the log to Spark's users, ``cli`` is ``kainite apply``. Each room imports only
from rooms below it, in this order: cli, data_source, driver, executor, plan, targets. Of kainite, this package imports
the log, units and their catalogue, settings, AWS clients, and for loaders the child process.
"""
