"""botocore is imported without what writes docstrings, and is the same botocore otherwise."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAMS = {
    "the package is not loaded, and clients can be made and used": """
        from kainite.aws.clients import client
        from kainite.settings import AwsSettings
        import sys
        made = client("dynamodb", AwsSettings("us-east-1", dynamodb_endpoint="http://127.0.0.1:1"))
        assert made.get_item.__doc__ == ""
        assert made.get_waiter("table_exists") is not None
        assert made.get_paginator("scan") is not None
        assert not {"botocore.docs", "botocore.docs.docstring", "botocore.docs.service"} & set(sys.modules)
    """,
    "who wants docstrings later finds the package": """
        from kainite.aws.docstrings import import_botocore
        import_botocore()
        from botocore.docs.docstring import ClientMethodDocstring
        from botocore.docs.service import ServiceDocumenter
        assert ClientMethodDocstring.__module__ == "botocore.docs.docstring"
    """,
    "who has imported botocore before keeps its docstrings": """
        import sys
        import botocore.client
        before = sys.modules["botocore.docs.docstring"]
        from kainite.aws.docstrings import import_botocore
        import_botocore()
        assert sys.modules["botocore.docs.docstring"] is before
        assert botocore.client.ClientMethodDocstring is before.ClientMethodDocstring
    """,
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_docstrings(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    code = "\n".join(line.strip() for line in program.strip().splitlines())
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
