"""The kinds of targets, as far as a shard host needs them: one folder a kind.

The list of kinds is :data:`kainite.settings.kinds.target_kinds.TARGET_KINDS`. The list names each module of this room
by its dotted path; apart from that, only ``kainite_spark`` imports these modules. A kind's ``address`` says how
``target`` is written; it imports no driver. Its ``catalogue`` reads the target's tables
(:class:`kainite.uow.catalogue.introspection.CatalogueReader`), and its ``type_families`` says how the values of a
column's type are spelled before keys are compared (:class:`kainite.uow.catalogue.tables.TypeFamily`). Imports from
outside: the catalogue's model, settings, ``base``; a driver in ``catalogue`` and ``connection`` alone.
"""
