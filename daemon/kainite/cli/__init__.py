"""The command line: ``kainite`` and its commands.

Begin reading with :mod:`~kainite.cli.main`, which lists the commands; each command is imported when it is called, from
the module of its name (``leases_reset`` is ``kainite leases reset``). The other modules are what commands have in
common: ``lazy_group`` (late imports, errors on one line), ``options``, ``terminal``, ``settings_report`` and
``extract_report`` (``--check``), ``settings_warnings``, ``observed_leases``. The command line may import every room of
kainite.
"""
