"""The kinds of values: what may be written for a key, and how the text becomes a value.

Begin reading with :mod:`~kainite.settings.kinds.values`. ``markers`` and ``audit_trail`` have the kinds that only the
``markers`` dialect and the audit trail need. The kinds import nothing of the settings but placeholders and
loader_command.
"""
