"""The sections of the settings: one module for each part of Kainite that has settings.

Each part of Kainite takes only its own section. A field states its key, its bounds, its default, its meaning and what
SIGHUP does with a change of it (:mod:`kainite.settings.key`); nothing else about a setting is written elsewhere.
Times are seconds here and milliseconds in the file, as KCL has them. Other rooms import the sections from
:mod:`kainite.settings`; the sections import only the statement of keys, the kinds of values, credentials and
:mod:`kainite.base`.
"""
