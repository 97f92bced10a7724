"""Opens the audit trail that the settings name."""

from __future__ import annotations

from pathlib import Path

from kainite.owner.audit.folder import FolderAudit
from kainite.owner.audit.trail import AuditTrail
from kainite.settings import AwsSettings, LogSettings


def open_audit(settings: LogSettings, aws: AwsSettings) -> AuditTrail | None:
    """Returns the audit trail that the settings name, if any; makes no call to S3.

    Raises:
        SettingsError: the trail is on S3, and there is no region or there are no credentials.
    """
    place = settings.audit_trail
    if place is None:
        return None
    if isinstance(place, Path):
        return FolderAudit(place)
    # Imported here, so that a daemon without S3 starts without its client.
    from kainite.aws.clients import client
    from kainite.owner.audit.s3 import S3Audit

    return S3Audit(client("s3", aws), place, settings.partition)
