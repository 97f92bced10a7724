"""Lists what settings expose: to other users of the host, and to whoever stands on the way to another one.

``kainite run --check`` and ``kainite apply --check`` print the list; whoever checks more calls it too.
Only files are looked at; nothing is connected to. An exposure is a warning: nothing is refused for it.

==================================================  ==============================================================
:mod:`~kainite.settings.exposure.listing`           the list of all exposures
:mod:`~kainite.settings.exposure.finding`           one exposure: what, where, and the remedy
:mod:`~kainite.settings.exposure.secret_files`      files with a secret that others may read; secrets in ``ps``
:mod:`~kainite.settings.exposure.network`           plain text, certificates that nobody checks, open ports
:mod:`~kainite.settings.exposure.folders`           folders with rows into which others may look
==================================================  ==============================================================
"""
