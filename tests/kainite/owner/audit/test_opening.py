"""The audit trail that the settings name."""

from __future__ import annotations

from pathlib import Path

from kainite.owner.audit.folder import FolderAudit
from kainite.owner.audit.opening import open_audit
from kainite.owner.audit.s3 import S3Audit
from kainite.settings import AwsSettings, LogSettings, S3Folder


def settings(trail: Path | S3Folder | None) -> LogSettings:
    return LogSettings("t", "a", enabled=True, audit_trail=trail)


def test_without_one_there_is_none() -> None:
    assert open_audit(settings(None), AwsSettings()) is None


def test_a_folder(tmp_path: Path) -> None:
    assert isinstance(open_audit(settings(tmp_path), AwsSettings()), FolderAudit)


def test_a_bucket_is_not_called_yet() -> None:
    aws = AwsSettings("us-east-1", s3_endpoint="http://127.0.0.1:1")
    assert isinstance(open_audit(settings(S3Folder("bucket", "")), aws), S3Audit)
