"""The writes and reads of a delta: the tokens by which deltas, and units of work, are found to depend on each other.

Begin with :mod:`~kainite.uow.touched.deltas`, which has the rule. A token is a key's canonical value
(:mod:`~kainite.uow.touched.key`) or stands for something that no value names. What foreign keys with actions reach is
worked out once a catalogue by :mod:`~kainite.uow.touched.cascade`; :mod:`~kainite.uow.touched.family` folds
partitions into their outermost table. Signatures (:mod:`kainite.uow.signature`) are these tokens as 64-bit hashes;
the apply job orders the deltas of a unit by the same tokens as text. :mod:`~kainite.uow.touched.by_name` computes the
signatures of many deltas with the same names. The package imports ``uow.catalogue``,
``uow.canonical``, ``uow.delta`` and ``base``.
"""
