"""The target's tables: columns, keys and foreign keys.

Begin with :mod:`~kainite.uow.catalogue.tables`, the model. :mod:`~kainite.uow.catalogue.load` chooses between a file
(:mod:`~kainite.uow.catalogue.file`) and the target itself (:mod:`~kainite.uow.catalogue.reflection`). What differs from
database to database stands in ``kainite.targets``, one folder a kind; only the modules there need a database driver,
and ``reflection`` imports the one that it needs when it is called. Imports from outside: settings and ``base``.
"""
