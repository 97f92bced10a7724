"""The keys of a settings file.

Begin reading with :mod:`~kainite.settings.keys.table`, the table of all keys that have an effect, and
:mod:`~kainite.settings.keys.key`, one key. ``kcl`` has KCL's keys, ``own`` Kainite's own; without_effect has KCL's keys
that are accepted without effect. The keys import the sections, the kinds of values and credentials.
"""
