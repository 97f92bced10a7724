"""What a person does to a running application: the one way of commands and of the console.

=========================================  ==========================================================================
:mod:`~kainite.operations.operation`       the operations, each with what it is about; begin here
:mod:`~kainite.operations.carrying_out`    :class:`~kainite.operations.carrying_out.Operations`: preview, carry out
:mod:`~kainite.operations.units`           operations on units of work, which the log's owner carries out
:mod:`~kainite.operations.owners`          operations on the log itself, which its owner carries out
:mod:`~kainite.operations.checkpoints`     a reset: what it would change, what follows from it, the reset itself
:mod:`~kainite.operations.leases`          a restart of a shard's child, a move of its lease: asked of the holder
:mod:`~kainite.operations.duties`          operations on the fleet: duties and workers
:mod:`~kainite.operations.inbox`           requests to the log's owner, and its answers
:mod:`~kainite.operations.history`         what was done: the log's records, and those that are still in the inbox
=========================================  ==========================================================================

**Nothing is carried out and not recorded.** An operation on the log is a request that names who asks, and why; the
owner writes the record into the batch that carries the request out (:mod:`kainite.owner.answering`). Any other
operation is recorded first:

==========================  =========================================  ==============================================
after the step              the history shows                          a crash
==========================  =========================================  ==============================================
nothing                     nothing                                    nothing was done
``record`` in the inbox     asked                                      asked; it may have been carried out or not
operation carried out       asked                                      the same: who reads the history looks
outcome in the inbox        done, refused or failed                    the next owner copies both into the log
owner has copied both       the same                                   the answers in the inbox are deleted later
==========================  =========================================  ==============================================

The inbox is in the log's table, so a record is durable also where no owner is at work, as while checkpoints are reset.
An application without a log (``unitsOfWork`` is off) has no such record; changes of the fleet stand in the fleet's own
history in any case, written with the change.

Who may do it: whoever may write the log's table, the lease table or the fleet's (docs/aws.md has the policies). A page
in front of it checks its users itself, and passes the user on as ``who``.
"""
