"""The daemon behind ``kainite run``: a consumer with a child process for each shard whose lease this worker holds.

Begin with :mod:`~kainite.worker.supervisor` (the daemon), then :mod:`~kainite.worker.shard_consumer` (one shard) and
:mod:`~kainite.worker.call_rules` (when a checkpoint may be written and what is appended before it). The room may import
from every room below it (docs/architecture.md, *Rooms*).

==============================================  ===================================================================
:mod:`~kainite.worker.supervisor`               starts, runs and stops the daemon
:mod:`~kainite.worker.settings_in_force`        the settings, read again on request
:mod:`~kainite.worker.units_of_work`            opens the log and the catalogue
:mod:`~kainite.worker.retrieval_mode`           polling or enhanced fan-out
:mod:`~kainite.worker.consumers`                a consumer for each lease gained
:mod:`~kainite.worker.shard_consumer`           one shard: source, child, log, lease
:mod:`~kainite.worker.reading_reports`          tells the log how far shards are read
:mod:`~kainite.worker.cut_off`                  gives the shards back while the log is not reached
:mod:`~kainite.worker.consumer_states`          the states and transitions of a shard's consumer, as a table
:mod:`~kainite.worker.shard_reading`            reads the shard, across restarts of the child
:mod:`~kainite.worker.beginning`                where reading begins with units of work
:mod:`~kainite.worker.shard_call`               the calls of a shard's child: carries out the rules
:mod:`~kainite.worker.call_rules`               the rules of a call, without I/O
:mod:`~kainite.worker.heavy_work`               work on the loop, or on a thread where it is long
:mod:`~kainite.worker.child_failures`           what follows from a failed child
:mod:`~kainite.worker.shard_metrics`            what is measured of a shard's calls
:mod:`~kainite.worker.aws_threads`              the threads that call AWS
:mod:`~kainite.worker.first_failure`            the one error that explains why the daemon ended
:mod:`~kainite.worker.malloc_arena`             one malloc arena for all threads
==============================================  ===================================================================
"""
