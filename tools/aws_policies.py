"""Writes ``docs/aws/iam/*.json``: the policies of ``docs/aws/kainite.yaml``, for roles made without CloudFormation.

The template is the source; a test compares the files with :func:`rendered`. REGION, ACCOUNT, APPLICATION, STREAM,
BUCKET and ARN_OF_ANOTHER_STREAM in the files are placeholders.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cfnlint.decode import cfn_yaml

DOCS = Path(__file__).parent.parent / "docs" / "aws"
TEMPLATE = DOCS / "kainite.yaml"
FOLDER = DOCS / "iam"

PLACEHOLDERS = {
    "AWS::Partition": "aws",
    "AWS::Region": "REGION",
    "AWS::AccountId": "ACCOUNT",
    "ApplicationName": "APPLICATION",
    "StreamName": "STREAM",
    "AuditBucket": "BUCKET",
    "MoreStreams": "ARN_OF_ANOTHER_STREAM",
}


def policies(values: Mapping[str, str] = PLACEHOLDERS) -> dict[str, Any]:
    """Returns the template's policy documents by name (``Worker`` for ``WorkerPolicy``), parameters filled in."""
    resources = cfn_yaml.load(str(TEMPLATE))["Resources"]
    return {
        name.removesuffix("Policy"): resolve(resource["Properties"]["PolicyDocument"], values)
        for name, resource in resources.items()
        if resource["Type"] == "AWS::IAM::ManagedPolicy"
    }


def resolve(node: Any, values: Mapping[str, str]) -> Any:
    """Returns a part of the template with ``Ref`` and ``Fn::Sub`` carried out.

    Raises:
        KeyError: the part refers to a name that ``values`` lacks.
    """
    match node:
        case {"Ref": name, **rest} if not rest:
            return values[str(name)]
        case {"Fn::Sub": text, **rest} if not rest:
            return re.sub(r"\$\{([^}]+)\}", lambda found: values[found[1]], str(text))
        case dict():
            return {str(key): resolve(value, values) for key, value in node.items()}
        case list():
            return [resolve(each, values) for each in node]
        case str():
            return str(node)
        case _:
            return node


def rendered() -> dict[Path, str]:
    """Returns each policy file's path and content."""
    return {
        FOLDER / f"{_dashed(name)}.json": json.dumps(document, indent=2) + "\n" for name, document in policies().items()
    }


def _dashed(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in rendered().items():
        path.write_text(text, encoding="utf-8")
