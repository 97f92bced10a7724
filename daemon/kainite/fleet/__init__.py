"""Duties: what must run exactly once somewhere in the fleet, given to a worker, watched and moved (docs/fleet.md).

The lease table places the shards; this room places everything else: the owner of the log, extractors, the apply job,
and programs of the user's own. Begin with :mod:`~kainite.fleet.model.states` (the statuses and who may change them),
then :mod:`~kainite.fleet.steps.member` (what one worker does at a look). The room is imported by the daemon and by
``kainite fleet``. Imports from outside: child (processes alone), aws, settings, base.

=================================  ==========================================================================
:mod:`~kainite.fleet.model`       statuses, records, assignment, rebalancing, dormancy, restarts: no I/O
:mod:`~kainite.fleet.store`       the coordination table: contract, in memory, in DynamoDB
:mod:`~kainite.fleet.steps`       what a worker and a leader decide at one look: no I/O
:mod:`~kainite.fleet.programs`    the programs of duties, as children of the daemon
:mod:`~kainite.fleet.service`     the loop around it
:mod:`~kainite.fleet.operator`    what ``kainite fleet`` changes
=================================  ==========================================================================
"""
