"""Shares one LocalStack among all test processes of this machine: the first one starts it, the last one stops it.

``KAINITE_LOCALSTACK`` names a running one, which the tests do not stop. Tests can share it, because their streams and
tables have names of their own (``unique``). A second LocalStack, which throttles, is shared in the same way.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

GIVEN = "KAINITE_LOCALSTACK"
ROOT = Path(__file__).parents[2]
HOST = (sys.executable, "-m", "localstack.host")
START_LIMIT_S = 600.0
"""The first start on a machine downloads LocalStack."""

STOP_LIMIT_S = 60.0
THROTTLED = ("KINESIS_ERROR_PROBABILITY=0.2", "DYNAMODB_ERROR_PROBABILITY=0.1")


@contextmanager
def localstack() -> Iterator[str]:
    """Gives the address of a LocalStack that injects no errors."""
    given = os.environ.get(GIVEN)
    if given:
        yield given
        return
    with _shared("tests") as endpoint:
        yield endpoint


@contextmanager
def throttling_localstack() -> Iterator[str]:
    """Gives the address of a LocalStack that throttles every fifth put to a stream and every tenth call of DynamoDB."""
    with _shared("tests-throttled", *THROTTLED) as endpoint:
        yield endpoint


@contextmanager
def _shared(name: str, *settings: str) -> Iterator[str]:
    """Starts the instance for the first user, and stops it after the last one."""
    # Users share a lock, which the kernel takes from those that crash; whoever gets it exclusively is the last user.
    with (Path(tempfile.gettempdir()) / f"kainite-localstack-{os.getuid()}-{name}").open("a") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield _host("start", "--name", name, "--port", "0", *(f"--set={s}" for s in settings), limit=START_LIMIT_S)
        finally:
            fcntl.flock(users, fcntl.LOCK_UN)
            if _alone(users):
                _host("stop", "--name", name, limit=STOP_LIMIT_S)


def _alone(users: IO[str]) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _host(*arguments: str, limit: float) -> str:
    ended = subprocess.run([*HOST, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=limit, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()
