"""Several targets that refuse together: what one of them refuses, no other one commits.

``targetCommit = together``. One apply job serves all targets: its target is :class:`~.target.TogetherTarget`, which has
the contract of any other (:mod:`kainite_spark.targets.contract`). So the backlog, the micro-batches and the log's
entries are those of a log with one target; units have no parts. A group of units is, in the task that applies it::

    apply in each, in an open transaction ──► commit in each, one after the other

A target that refuses a unit does so before any of them commits. Nothing is prepared, and nothing is decided: that is
what ``atomic`` adds, for the time between two commits. Each target has its own ledger and fence; the name of the log
there is that of the log and of the target (:func:`~.target.ledger_in`).

=====================  ==============================================================================================
state of a unit        next
=====================  ==============================================================================================
not applied            applied in some: a commit; not applied: a target refuses it, or is away
applied in some        applied in all: by the task's next commit, or by a later task, which applies what is missing
applied in all         (end): the unit is committed
=====================  ==============================================================================================

Invariants:

* each unit is acknowledged in *each* target, also in one that has none of its tables, in the transaction that applies
  its part there. So it is committed when all have the acknowledgement, and whoever asks needs not know its tables;
* a part is applied once: a task asks each target which units it has, and leaves these parts out there;
* the first commit comes when all targets have taken all deltas of the group, with what they check at a commit where
  they can be asked for that (PostgreSQL's deferred constraints; not SQLite's deferred foreign keys).

What a crash leaves, with the targets A and B, which commit in this order:

===================================  ===============================================================================
crash, or a lost connection          then
===================================  ===============================================================================
before A commits                     both roll back; the units are tried again
the answer of A's commit is lost     B rolls back; A is asked, and what it has is not applied there again
after A has committed,               A has the units, B has not, until they are tried again: A's part is left out, B's
before B has                         part is applied. Nothing that conflicts with them is applied before that
... and now B refuses a unit         it fails: applied in A, and not in B. Its cause says so. A retry tries B alone, a
                                     discard leaves it as it is
... and a person discards it         it is discarded, and A keeps its part; the job says so
B away                               the job waits for B, and begins no micro-batch, so nothing else is applied either
a task that stands still, and        until it goes on, or its session is ended, it holds the fences of the targets in
goes on                              which it has not committed, and the job waits; after that it is refused. What it
                                     has committed in A alone is applied in B by the next task
driver, while it advances fences     the next one advances all of them again
===================================  ===============================================================================

A reader of both may see a unit in A some milliseconds before it is in B; after a crash, or while B is away, for longer.

A loader (``exec:``) commits when it answers, and so cannot wait for the others.
"""
