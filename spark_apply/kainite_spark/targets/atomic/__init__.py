"""Several targets as one: a transaction that touches two or more of them is committed in all, or in none.

``targetCommit = atomic``. One apply job serves all targets: its target is :class:`~.target.AtomicTarget`, which has the
contract of any other (:mod:`kainite_spark.targets.contract`). So the backlog, the micro-batches, the order of units and
the log's entries are those of a log with one target; units have no parts. A group of units that touches one target is
one transaction there. A group that touches several is, in the task that applies it::

    prepare in each ──► decide in the log ──► commit in each

Each target has the ledger and the fence of the log; both are changed in the group's own transaction there.

**The decision** is a register in the log under the transaction's name: the first one that is put stands
(:meth:`kainite.log.contract.LogStore.decide`, one conditional write). The task that has prepared in all targets puts
*committed*. Whoever else meets the prepared transaction puts *rolled back*, before he rolls back: without a decision a
transaction is rolled back, and can never be decided otherwise later (presumed abort).

=====================  ==============================================================================================
state                  next
=====================  ==============================================================================================
preparing              prepared; or rolled back by its own task, which has put no decision, and never will
prepared               committed (its task decides); rolled back (the driver, or the task that lost an answer, decides)
decided: committed     committed in each target: by its task, by the driver, or by a task that finds a part of it
decided: rolled back   rolled back in each target, by whoever finds it
=====================  ==============================================================================================

Invariants:

* *committed* is put by the task that has prepared in all targets of the group, and by nobody else;
* a prepared part is committed only under the decision *committed*. It is rolled back only under the decision *rolled
  back*, or by the task itself, before it has put any;
* a prepared part holds the fence of its target, also after a crash of the target's server (how, is its kind's matter:
  :mod:`kainite_spark.targets.mariadb.prepared` has what MariaDB needs for it). Before the driver advances the fences,
  it finishes all parts of earlier fences (generation, micro-batch), those of former drivers too. What is prepared
  meanwhile keeps the fence, and the driver waits, and looks again. It leaves the parts of newer drivers alone;
* a decision is deleted when the fences of *all* targets have passed its transaction: then no part of it is prepared,
  and none will be. A task that wakes up later may put a decision anew, which then means nothing. The decision
  *committed* names the transaction's targets, and is kept while one of them is not in the settings file: that one's
  part may be left prepared, and is committed when it is back;
* a unit counts as acknowledged when one of its targets has the acknowledgement. It is reported only after every part
  that is decided and left over has been committed, so the unit is in all its targets then.

What a crash leaves, with the targets A and B:

=================================  =================================================================================
crash                              then
=================================  =================================================================================
before A is prepared               nothing
after A, or B, is prepared, and    the driver finds one part, or both, before its next fence (or the next driver before
before the decision is put         its generation): it puts *rolled back*, and rolls back; the units are tried again
the answer of a prepare is lost    the task rolls back what it reaches; the driver does the rest, as above
the answer of the decision is      the task puts *rolled back*, and hears which decision stands, and acts on it; it
lost                               asks the acknowledgements before it tries again
after the decision *committed*     the driver, or a task that finds the acknowledgement in A alone, reads the decision
and before A or B is committed     and commits; no unit of the group is tried again before that
after A and B are committed        the units are found acknowledged
B away after the decision          B's part keeps its locks, and the fence of B: the job waits for B, and says so; what
                                   is left in A is finished
the server of A, or B, is killed   it begins again with what it has prepared, and with the locks of it, and the fence
B taken out of the settings file   its part keeps its locks there; the decision is kept, and each start warns
driver, while it finishes parts    the next one finds the same decisions, and goes on
a task that stands still, and      prepared under an old fence: refused. Decides: finds *rolled back*, or finds nothing
goes on after any of these         to commit. Commits: the part is gone. So it asks the acknowledgements
while decisions are deleted        the rest is deleted the next time
=================================  =================================================================================

What it costs, beside one target: a second flush to disk in each target, one write of the log, and that a target which
is away holds up all units, since each micro-batch advances the fences of all. Locks of rows are held while the
decision is written.

The comparison with the mark (:mod:`kainite_spark.targets.mark`) is made for each target by its fence alone. Which of
the last micro-batch's units a target must have acknowledged is not known of several: a target that went back within
this micro-batch, and not before it, is not noticed.
"""
