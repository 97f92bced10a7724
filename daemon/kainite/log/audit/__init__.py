"""The audit trail: units are written there before they are truncated from the log.

Begin with :mod:`~kainite.log.audit.trail`, the interface. :mod:`~kainite.log.audit.folder` and
:mod:`~kainite.log.audit.s3` implement it, :mod:`~kainite.log.audit.opening` chooses one by the settings. The package
imports ``log.views``, ``aws`` and ``settings``.
"""
