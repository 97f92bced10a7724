"""The IAM policies of docs/aws, with an application's names in the place of the parameters."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

from support.aws_calls import ACCOUNT, REGION

TOOL = Path(__file__).parents[2] / "tools" / "aws_policies.py"


@cache
def tool() -> Any:
    """Returns the module that writes the policies' files."""
    spec = importlib.util.spec_from_file_location("aws_policies", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def documents(application: str, stream: str = "", bucket: str = "bucket", other: str = "") -> dict[str, Any]:
    """Returns the policies by name.

    Args:
        application: its name.
        stream: the stream's name; the application's where it is empty.
        bucket: of the audit trail.
        other: the ARN of a second stream.
    """
    policies: dict[str, Any] = tool().policies(
        {
            "AWS::Partition": "aws",
            "AWS::Region": REGION,
            "AWS::AccountId": ACCOUNT,
            "ApplicationName": application,
            "StreamName": stream or application,
            "AuditBucket": bucket,
            "MoreStreams": other or f"arn:aws:kinesis:{REGION}:{ACCOUNT}:stream/other",
        }
    )
    return policies
