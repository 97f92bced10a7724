"""Duties: what must run exactly once somewhere in the fleet, given to a worker, watched and moved (docs/fleet.md).

The lease table places the shards; this room places everything else: the owner of the log, extractors, the apply job,
and programs of the user's own. Begin with :mod:`~kainite.duties.model.states` (the statuses and who may change them),
then :mod:`~kainite.duties.steps.member` (what one worker does at a look). The room is imported by the daemon and by
``kainite fleet``. Imports from outside: child (processes alone), aws, settings, base.

=================================  ==========================================================================
:mod:`~kainite.duties.model`       statuses, records, assignment, rebalancing, dormancy, restarts: no I/O
:mod:`~kainite.duties.store`       the coordination table: contract, in memory, in DynamoDB
:mod:`~kainite.duties.steps`       what a worker and a leader decide at one look: no I/O
:mod:`~kainite.duties.programs`    the programs of duties, as children of the daemon
:mod:`~kainite.duties.service`     the loop around it
:mod:`~kainite.duties.operator`    what ``kainite fleet`` changes
=================================  ==========================================================================
"""
