"""The audit trail on S3: one object for each truncation of the log, ``PREFIX/PARTITION/FIRST-LAST.jsonl.zst``.

FIRST and LAST are the lowest and the highest id that the truncation removes from the log, in 20 digits, so that a
listing is in the log's order. What a crash leaves behind:

* before PutObject's answer   an object or none: S3 shows an object whole or not at all;
* before the truncation      an object whose ids are written again, under the same key or under a key with the same
  FIRST and a later LAST. A unit is truncated only when it is resolved, so both objects have the same row of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from kainite.aws.failures import error_code
from kainite.base.errors import LogUnavailableError
from kainite.log.views.unit_table import LogRow
from kainite.owner.audit.trail import frame
from kainite.settings import S3Folder

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

CONTENT_TYPE = "application/zstd"

_WHAT_TO_DO = {
    "NoSuchBucket": "make the bucket, or name another one in auditTrail",
    "AccessDenied": "allow the worker's role s3:PutObject there",
    "PermanentRedirect": "the bucket is in another region: set s3Endpoint, or use a bucket in the log's region",
}
_ELSE = "the next snapshot tries again, and the log keeps everything until then"


class S3Audit:
    """Implements :class:`~kainite.owner.audit.trail.AuditTrail` in an existing bucket.

    Args:
        client: a boto3 S3 client.
        folder: the bucket, and the prefix of all keys.
        partition: the log partition's name.
    """

    def __init__(self, client: S3Client, folder: S3Folder, partition: str) -> None:
        self._client = client
        self._folder = folder
        self._partition = partition

    def write(self, rows: Iterable[LogRow], low: int, high: int) -> None:
        compressed = frame(rows)
        if not compressed:
            return
        try:
            self._client.put_object(
                Bucket=self._folder.bucket, Key=self._key(low, high), Body=compressed, ContentType=CONTENT_TYPE
            )
        except ClientError as error:
            raise self._unwritten(error, _WHAT_TO_DO.get(error_code(error), _ELSE)) from error
        except BotoCoreError as error:
            raise self._unwritten(error, _ELSE) from error

    def _key(self, low: int, high: int) -> str:
        name = f"{low:020}-{high - 1:020}.jsonl.zst"
        return "/".join(filter(None, (self._folder.prefix, self._partition, name)))

    def _unwritten(self, error: Exception, what_to_do: str) -> LogUnavailableError:
        return LogUnavailableError(f"the audit trail {self._folder} cannot be written: {error}; {what_to_do}")
