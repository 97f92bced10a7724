"""The target's tables: columns, keys and foreign keys.

Begin with :mod:`~kainite.uow.catalogue.tables`, the model. :mod:`~kainite.uow.catalogue.load` chooses between a file
(:mod:`~kainite.uow.catalogue.file`) and the target itself (:mod:`~kainite.uow.catalogue.reflection`, with
:mod:`~kainite.uow.catalogue.postgresql` and :mod:`~kainite.uow.catalogue.sqlite`). Only ``reflection`` needs
SQLAlchemy and a database driver, and only ``load`` imports it, when it is needed.
"""
