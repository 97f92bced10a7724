"""The audit trail: units are written there before they are truncated from the log.

Begin with :mod:`~kainite.owner.audit.trail`, the interface. :mod:`~kainite.owner.audit.folder` and
:mod:`~kainite.owner.audit.s3` implement it, :mod:`~kainite.owner.audit.opening` chooses one by the settings.
"""
