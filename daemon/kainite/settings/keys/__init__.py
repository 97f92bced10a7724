"""All keys of a settings file.

Begin reading with :mod:`~kainite.settings.keys.table`, which reads the keys from the sections; ``without_effect`` has
KCL's keys that are accepted without effect. The keys import the settings with their sections.
"""
