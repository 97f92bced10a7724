"""LocalStack for tests: one for all test processes of this machine, started by the first and stopped by the last.

``KAINITE_LOCALSTACK`` names one that runs already; it is left as it is. Names of streams and tables are the
tests' own (``unique``), so that they can share it. A second one, which throttles, is shared in the same way.
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
    """Address of a LocalStack that works as well as it can."""
    given = os.environ.get(GIVEN)
    if given:
        yield given
        return
    with _shared("tests") as endpoint:
        yield endpoint


@contextmanager
def throttling_localstack() -> Iterator[str]:
    """Address of one that refuses every fifth put to a stream, and every tenth call of DynamoDB's, for throughput."""
    with _shared("tests-throttled", *THROTTLED) as endpoint:
        yield endpoint


@contextmanager
def _shared(name: str, *settings: str) -> Iterator[str]:
    """Users hold a lock together, which the kernel takes from those that crash; whoever gets it alone is the last."""
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
