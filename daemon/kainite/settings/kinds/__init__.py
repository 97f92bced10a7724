"""The kinds of values: what may be written for a key, and how the text becomes a value.

Begin reading with :mod:`~kainite.settings.kinds.values`. ``markers`` and ``audit_trail`` have the kinds that only the
``markers`` dialect and the audit trail need. The kinds import nothing of the settings but placeholders and
loader_command.

:mod:`~kainite.settings.kinds.target_kinds` is the list of the kinds of targets. The parts of a kind are imported by the
names that its line has, when they are used, so that this room knows of no database.
"""
