"""Units of work: deltas, what makes two units conflict, and the target's tables.

Begin with :mod:`~kainite.uow.delta` (what a child emits) and :mod:`~kainite.uow.admission` (from emitted lines to
fragments). :mod:`~kainite.uow.validation` checks a delta against the target's tables
(:mod:`~kainite.uow.catalogue`), :mod:`~kainite.uow.completion` gives it what only the target knows,
:mod:`~kainite.uow.signature` computes signatures, :mod:`~kainite.uow.conflicts` is the conflict rule,
:mod:`~kainite.uow.precedence` the order of tables by foreign keys. The room imports ``settings``, ``observe``, ``aws``
and ``base`` only.
"""
