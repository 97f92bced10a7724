"""kinesis-mock, which LocalStack runs for Kinesis, as npm's package ``kinesis-local``: a process of its own.

It answers SubscribeToShard (moto does not), with three differences to AWS: no ``initial-response`` comes first,
a shard's end is never shown, and a second subscription does not take over from the first one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from support.ports import free_port

PACKAGE = Path(sys.prefix) / "peers/node/node_modules/kinesis-local"
START_LIMIT_S = 60.0
SCRIPT = "process.stdin.on('end', () => process.exit()).resume(); require('./main.js')"
"""The command ends with its input, and so also where this process is killed and cleans up nothing."""

LIFE_CYCLE = ("CREATE_STREAM", "DELETE_STREAM", "MERGE_SHARDS", "SPLIT_SHARD", "REGISTER_STREAM_CONSUMER")


@contextmanager
def kinesis_local() -> Iterator[str]:
    """Yields its address, plain HTTP, while it runs."""
    plain, tls = free_port(), free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "KINESIS_MOCK_PLAIN_PORT": str(plain),
        "KINESIS_MOCK_TLS_PORT": str(tls),
        "SHARD_LIMIT": "1000",
        "LOG_LEVEL": "ERROR",
        **{f"{name}_DURATION": "10ms" for name in LIFE_CYCLE},
    }
    # It looks for its certificate where it is started.
    process = subprocess.Popen(
        ["node", "-e", SCRIPT], cwd=PACKAGE, env=environment, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        endpoint = f"http://127.0.0.1:{plain}"
        _wait_until_it_answers(endpoint, process)
        yield endpoint
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def client_of(endpoint: str) -> Any:
    """Returns a client that does not retry by itself."""
    import boto3

    config = Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=30)
    return boto3.client("kinesis", endpoint_url=endpoint, region_name="us-east-1", config=config)


def _wait_until_it_answers(endpoint: str, process: subprocess.Popen[bytes]) -> None:
    client = client_of(endpoint)
    limit = time.monotonic() + START_LIMIT_S
    while True:
        try:
            client.list_streams()
        except (BotoCoreError, ClientError):
            if process.poll() is not None or time.monotonic() > limit:
                raise
            time.sleep(0.05)
        else:
            client.close()
            return
