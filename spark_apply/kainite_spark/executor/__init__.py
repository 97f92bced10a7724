"""The code that runs inside Spark's tasks: reads parts of units from the log, applies whole units to the target.

Begin with ``tasks``, then ``assemble`` (parts become units) and ``group_commit`` (units become target
transactions). Imports from outside: the log's store and entries, the conflict rule, AWS clients; no pyspark.
"""
