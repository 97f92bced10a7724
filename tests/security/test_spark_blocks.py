"""Another user of the host reads the target's password out of Spark: the driver's block port gives nobody a block."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

APPLY_JOB = """
import sys
from kainite_spark.driver.session import configuration, spark_context
from pyspark import SparkConf, SparkContext

def held(context):
    kept = context.broadcast("postgresql://user:the-password@host/db")
    assert context.parallelize([1], 1).map(lambda _: len(kept.value)).sum() > 0
    driver = context._jsc.sc().getExecutorMemoryStatus().keys().head()  # host:port of its block server
    print(driver.rpartition(":")[2], flush=True)
    sys.stdin.readline()

if sys.argv[1] == "protected":
    with spark_context("local[1]", "attacked") as context:
        held(context)
else:
    conf = SparkConf(loadDefaults=False)
    conf.setAll([(k, v) for k, v in configuration("local[1]", "attacked").items() if k != "spark.authenticate"])
    held(SparkContext(conf=conf))
"""

RPC_REQUEST, RPC_RESPONSE, RPC_FAILURE = 3, 4, 5
OPEN_BLOCKS = 0


def text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode()


def opened(port: int, block: str) -> int:
    """Asks Spark's block server for a block, in its own protocol; returns the kind of message that it answers with."""
    body = bytes([OPEN_BLOCKS]) + text("attacker") + text("0") + struct.pack(">i", 1) + text(block)
    message = struct.pack(">bqi", RPC_REQUEST, 7, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        connection.sendall(struct.pack(">q", 8 + len(message)) + message)
        answer = connection.makefile("rb").read(9)
    assert len(answer) == 9, "the connection was closed without an answer"
    return answer[8]


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    ("kind", "answer"), [("protected", RPC_FAILURE), pytest.param("open", RPC_RESPONSE, marks=pytest.mark.long)]
)
def test_a_block_is_given_to_nobody_who_only_knows_the_port(kind: str, answer: int, tmp_path: Path) -> None:
    # "open" is Spark as it comes. It shows that the attack is one.
    command = [sys.executable, "-c", APPLY_JOB, kind]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(tmp_path)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as job:
        assert job.stdout
        port = int(job.stdout.readline())
        try:
            assert opened(port, "broadcast_0") == answer
            readable = any(folder.stat().st_mode & 0o077 for folder in tmp_path.iterdir())
            assert readable == (kind == "open"), "other users can look into Spark's folders"
            assert any(tmp_path.iterdir())
        finally:
            job.communicate(b"\n", timeout=60)
