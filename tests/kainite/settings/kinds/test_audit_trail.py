"""The places of an audit trail: a folder, a prefix on S3, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.settings import S3Folder
from kainite.settings.kinds.audit_trail import folder_or_s3

FOLDER = Path("/etc/kainite")
KIND = folder_or_s3()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("audit", Path("/etc/kainite/audit")),
        ("/var/lib/kainite/audit", Path("/var/lib/kainite/audit")),
        ("s3", Path("/etc/kainite/s3")),
        ("s3://orders", S3Folder("orders")),
        ("s3://orders/", S3Folder("orders")),
        ("s3://orders/audit/app=orders/", S3Folder("orders", "audit/app=orders")),
    ],
)
def test_a_path_is_a_folder_and_an_address_is_on_s3(text: str, place: Path | S3Folder) -> None:
    assert KIND.parse(text, FOLDER) == place
    assert KIND.parse(KIND.show(place), FOLDER) == place


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("s3://", "names no bucket"),
        ("s3:///audit", "names no bucket"),
        ("s3://Orders/audit", "'Orders' is no bucket's name"),
        ("s3://or/audit", "3 to 63"),
        ("s3://orders..audit", "no bucket's name"),
        ("s3://arn:aws:s3:eu-west-1:1:accesspoint/x", "no bucket's name"),
        ("s3://orders/a//b", "no prefix"),
        ("s3://orders/a b?c", "no prefix"),
        ("s3://orders/" + "x" * 901, "at most 900"),
        ("S3://orders/audit", "s3://bucket/prefix"),
        ("s3:/orders/audit", "s3://bucket/prefix"),
        ("gs://orders/audit", "s3://bucket/prefix"),
    ],
)
def test_what_is_neither_is_refused_with_what_is_allowed(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        KIND.parse(text, FOLDER)
