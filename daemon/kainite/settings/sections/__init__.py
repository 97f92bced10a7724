"""The sections of the settings, with their defaults: one module for each part of Kainite that has settings.

Each part of Kainite takes only its own section. Times are seconds here and milliseconds in the file, as KCL has them.
The defaults in these modules are the only ones; ``kainite run --check`` shows them. Other rooms import the sections
from :mod:`kainite.settings`; the sections import only the kinds of values, credentials and :mod:`kainite.base`.
"""
