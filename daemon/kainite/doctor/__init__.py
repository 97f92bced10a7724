"""Asks whatever a settings file will need, before anything starts: ``kainite doctor``.

A check is a function that returns findings, each with what mends it. Checks run side by side, each with a time limit;
one that hangs or raises is a finding itself. No check changes anything: the right to write is asked for by a write
whose condition never holds, or by the deletion of a key that nobody writes.

==================================  =================================================================================
:mod:`~kainite.doctor.asking`       which checks a file needs, for the commands that run on this host
:mod:`~kainite.doctor.running`      runs checks, with the limit
:mod:`~kainite.doctor.finding`      one line of the list
:mod:`~kainite.doctor.streams`      Kinesis: shards, rights, retention
:mod:`~kainite.doctor.tables`       DynamoDB: keys of the tables, and the rights on them
:mod:`~kainite.doctor.aws_calls`    one call of AWS as a finding
:mod:`~kainite.doctor.clocks`       this host's clock beside others
:mod:`~kainite.doctor.catalogue`    the target's tables, their keys and their order
:mod:`~kainite.doctor.source`       a PostgreSQL source; imported by its name, since it needs a database driver
:mod:`~kainite.doctor.ports`        ports that are wanted twice, or taken
:mod:`~kainite.doctor.host`         settings, programs, open files, exposed secrets
==================================  =================================================================================

What only the apply job needs (triggers and grants of the target, Java) is ``kainite_spark.doctor``, imported by its
name too: a shard host need not have it. Nothing asks for the rights to put records, metrics or audit files: these calls
have no harmless form.
"""
