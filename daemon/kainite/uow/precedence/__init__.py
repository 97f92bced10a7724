"""The precedence map: the order of the target's tables by their foreign keys.

Begin with :mod:`~kainite.uow.precedence.levels`, which computes it; :mod:`~kainite.uow.precedence.load` chooses its
source by the settings, :mod:`~kainite.uow.precedence.rendering` shows it to people. The package imports
``uow.catalogue`` and ``base``.
"""
