"""Imports botocore without awscrt, which takes each command a tenth of its time.

botocore imports awscrt wherever it is installed (the extra ``fanout`` brings it). Of what botocore does with it,
Kainite's clients may need one thing: credentials of ``aws login``, which a profile names by ``login_session``. Fan-out
over HTTP/2 uses awscrt itself, and imports it when it begins.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_LOGIN: Final = b"login_session"
_FILES: Final = {"AWS_CONFIG_FILE": "~/.aws/config", "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials"}


def import_botocore(environment: Mapping[str, str] = os.environ) -> None:
    """Imports the part of botocore that imports awscrt: without it, unless credentials of a login may be used.

    Args:
        environment: this process's, which may name AWS's files.
    """
    modules: dict[str, Any] = sys.modules
    if "botocore.compat" in modules or "awscrt" in modules or may_use_login(environment):
        return
    modules["awscrt"] = None  # so Python finds no such module
    try:
        import botocore.compat  # noqa: F401
    finally:
        del modules["awscrt"]


def may_use_login(environment: Mapping[str, str]) -> bool:
    """Tells whether a profile in AWS's files has a login; True where a file cannot be read."""
    return any(_names_login(Path(environment.get(variable) or default)) for variable, default in _FILES.items())


def _names_login(file: Path) -> bool:
    try:
        return _LOGIN in file.expanduser().read_bytes()
    except FileNotFoundError:
        return False
    except (OSError, RuntimeError):  # RuntimeError: the user has no home
        return True
