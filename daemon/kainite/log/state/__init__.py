"""The log folded: what its entries add up to, without I/O but for :mod:`~kainite.log.state.loading`.

Begin with :mod:`~kainite.log.state.units` (what an entry does to a unit), then :mod:`~kainite.log.state.folded` (the
whole state). :mod:`~kainite.log.state.journal` decides and folds several entries in a row,
:mod:`~kainite.log.state.snapshot` has a state as bytes, :mod:`~kainite.log.state.loading` reads a state back from a
store, :mod:`~kainite.log.state.backlog` says when too many units wait. The package imports ``log.format``,
``log.contract``, ``uow``, ``settings`` and ``base``.
"""
